extension ControlAPI {
    /// The kind of failure: the stable code of a problem, or of a failure at one peer.
    public enum ErrorCode: String, Hashable, Sendable, CaseIterable {
        case notConnected = "not-connected"
        case invalidParameter = "invalid-parameter"
        case unsupported
        case timedOut = "timed-out"
        case cancelled
        case unavailable
        case unknownPeer = "unknown-peer"
        case ambiguousPeer = "ambiguous-peer"
        case notFound = "not-found"
        case conflict
        case forbidden
        case unknownGroup = "unknown-group"
        case ambiguousGroup = "ambiguous-group"
        case notMember = "not-member"
        case declined
        case busy
        case identityMismatch = "identity-mismatch"
        case encryptionMismatch = "encryption-mismatch"
        case downgradeDetected = "downgrade-detected"
        case versionUnsupported = "version-unsupported"
        case serviceMismatch = "service-mismatch"
        case protocolViolation = "protocol-violation"
        /// The peer may have received it.
        case unconfirmed
        /// Nothing has left this machine: sending again is safe.
        case notSent = "not-sent"
        case inboxFull = "inbox-full"
        case tooLarge = "too-large"
        case nameRejected = "name-rejected"
        case noSpace = "no-space"
        case digestMismatch = "digest-mismatch"
        case sourceChanged = "source-changed"
        case invalidSource = "invalid-source"
        case storage
    }

    /// A step that resolves a problem.
    public enum Remedy: String, Hashable, Sendable, CaseIterable {
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
        /// Create a new group with the members of the old one.
        case renewGroup = "renew-group"
        /// List the files.
        case listFiles = "list-files"
        /// Fetch or delete received files.
        case clearFiles = "clear-files"
        /// Cancel a transfer.
        case cancelFile = "cancel-file"
        /// Name the sender of the message, with `from`.
        case nameSender = "name-sender"
    }
}
