/// The state of a peer in a session.
public enum MCSessionState: Int, Sendable {
    case notConnected = 0
    case connecting = 1
    case connected = 2
}

/// The delivery of data.
public enum MCSessionSendDataMode: Int, Sendable {
    /// Data arrives complete and in order, while the peer is connected.
    case reliable = 0
    /// Data is sent immediately. It may be lost, and may overtake other data.
    case unreliable = 1
}

/// The encryption of a session's connections.
public enum MCEncryptionPreference: Int, Sendable {
    /// Encrypted, unless the other side excludes encryption.
    case optional = 0
    case required = 1
    /// Unencrypted. If the other side requires encryption, there is no connection.
    case none = 2
}

/// The minimum number of peers in a session, including the local one.
public let kMCSessionMinimumNumberOfPeers = 2

/// The maximum number of peers in a session, including the local one.
public let kMCSessionMaximumNumberOfPeers = 8
