public import EarshotWire

/// The only error type that leaves the library: a stable code, a sentence for a user, and the underlying error.
public struct EarshotError: Error, Sendable, CustomStringConvertible {
    /// The kind of failure. The raw value is the API's stable `code`.
    public enum Code: String, Sendable, Hashable, Codable, CaseIterable {
        // Multipeer Connectivity's vocabulary
        case notConnected = "not-connected"
        case invalidParameter = "invalid-parameter"
        case unsupported
        case timedOut = "timed-out"
        case cancelled
        case unavailable
        // Naming things
        case unknownPeer = "unknown-peer"
        case ambiguousPeer = "ambiguous-peer"
        case notFound = "not-found"
        case conflict
        case forbidden
        // Groups
        case unknownGroup = "unknown-group"
        case ambiguousGroup = "ambiguous-group"
        case notMember = "not-member"
        // Agreement
        case declined
        case busy
        // Connections
        case identityMismatch = "identity-mismatch"
        case encryptionMismatch = "encryption-mismatch"
        case downgradeDetected = "downgrade-detected"
        case versionUnsupported = "version-unsupported"
        case serviceMismatch = "service-mismatch"
        case protocolViolation = "protocol-violation"
        // Messages and resources
        case unconfirmed
        /// Nothing was sent from this machine, so that repeating the request is safe.
        case notSent = "not-sent"
        case inboxFull = "inbox-full"
        case tooLarge = "too-large"
        case nameRejected = "name-rejected"
        case noSpace = "no-space"
        case digestMismatch = "digest-mismatch"
        case sourceChanged = "source-changed"
        case invalidSource = "invalid-source"
        case storage = "storage"
    }

    /// The kind of failure.
    public let code: Code
    /// A lower-case sentence without a full stop: what failed, on what, and why.
    public let message: String
    /// The underlying error, for the log.
    public let underlying: (any Error)?

    /// The peers that the name could mean, for `ambiguous-peer`.
    public let candidates: [Candidate]
    /// The action that a user can take, if the code does not imply it.
    public let remedy: Remedy?

    /// An action that a user can take after an error. A front end words it: the command line names the command, and a program its own
    /// control. The raw value is the API's stable `remedy`.
    public enum Remedy: String, Sendable, Hashable, Codable, CaseIterable {
        /// Invite the peer to a session.
        case invite
        /// Unblock the peer.
        case unblock
        /// Trust the peer.
        case trust
        /// Revoke the trust in the peer, which also forgets how its connections were protected.
        case distrust
        /// Compare digits with the peer.
        case verify
        /// Compare the digits again, or remove the record of the mismatch.
        case compareAgain = "compare-again"
        /// List the invitations.
        case listInvitations = "list-invitations"
        /// List the groups.
        case listGroups = "list-groups"
        /// Make a new group with the old group's members.
        case renewGroup = "renew-group"
        /// List the files.
        case listFiles = "list-files"
        /// Fetch or delete received files.
        case clearFiles = "clear-files"
        /// Cancel the transfer of a file.
        case cancelFile = "cancel-file"
        /// Name the sender of the message.
        case nameSender = "name-sender"
    }

    /// A peer that an ambiguous name could mean.
    public struct Candidate: Sendable, Hashable, Codable {
        /// The peer's id.
        public let id: PeerID
        /// The peer's display name, unchanged.
        public let name: String

        package init(id: PeerID, name: String) {
            self.id = id
            self.name = name
        }
    }

    /// Creates an error of the given kind.
    public init(_ code: Code, _ message: String, underlying: (any Error)? = nil, candidates: [Candidate] = [], remedy: Remedy? = nil) {
        self.code = code
        self.message = message
        self.underlying = underlying
        self.candidates = candidates
        self.remedy = remedy
    }

    /// The message.
    public var description: String { self.message }
}

extension EarshotError: Equatable {
    /// Compares errors by what they say. The underlying error is only for the log.
    public static func == (left: Self, right: Self) -> Bool {
        left.code == right.code && left.message == right.message && left.candidates == right.candidates && left.remedy == right.remedy
    }
}
