public import EarshotWire

/// The one error that leaves the library: a stable code, a sentence for a person, and what lay underneath.
public struct EarshotError: Error, Sendable, CustomStringConvertible {
    /// What kind of failure; the raw value is the API's stable `code`.
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
        /// Nothing of it has left this machine: it is safe to send it again.
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

    /// What kind of failure.
    public let code: Code
    /// One lower-case sentence without a full stop: what failed, on what, and why.
    public let message: String
    /// What lay underneath, for the log.
    public let underlying: (any Error)?

    /// For `ambiguous-peer`: whom the name could mean.
    public let candidates: [Candidate]
    /// What the user can do about it, if the code does not say so.
    public let remedy: Remedy?

    /// What a user can do about an error. A front end words it: the command line names the command, a program its own control. The raw
    /// value is the API's stable `remedy`.
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
        /// Compare the digits again, or forget that they differed.
        case compareAgain = "compare-again"
        /// Look at the invitations.
        case listInvitations = "list-invitations"
        /// Look at the groups.
        case listGroups = "list-groups"
        /// Make a new group of the old one's members.
        case renewGroup = "renew-group"
        /// Look at the files.
        case listFiles = "list-files"
        /// Fetch or delete received files.
        case clearFiles = "clear-files"
        /// Cancel a file that is on its way.
        case cancelFile = "cancel-file"
        /// Name the sender of the message.
        case nameSender = "name-sender"
    }

    /// One of several peers that a name could mean.
    public struct Candidate: Sendable, Hashable, Codable {
        /// Its peer id.
        public let id: PeerID
        /// Its display name, as it came.
        public let name: String

        package init(id: PeerID, name: String) {
            self.id = id
            self.name = name
        }
    }

    /// An error of the given kind.
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
    /// Errors are the same where they say the same; what lay underneath is for the log.
    public static func == (left: Self, right: Self) -> Bool {
        left.code == right.code && left.message == right.message && left.candidates == right.candidates && left.remedy == right.remedy
    }
}
