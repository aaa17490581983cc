/// How a peer stands in a session.
public enum MCSessionState: Int, Sendable {
    case notConnected = 0
    case connecting = 1
    case connected = 2
}

/// How data travels.
public enum MCSessionSendDataMode: Int, Sendable {
    /// Whole, in order, for as long as the peer is connected.
    case reliable = 0
    /// Now or never: it may be lost, and may overtake.
    case unreliable = 1
}

/// What a session wants of its connections.
public enum MCEncryptionPreference: Int, Sendable {
    /// Encrypted, unless the other side wants none.
    case optional = 0
    case required = 1
    /// Plain, unless the other side requires encryption: then there is no connection.
    case none = 2
}

/// The fewest peers of a session, ourselves included.
public let kMCSessionMinimumNumberOfPeers = 2

/// The most peers of a session, ourselves included.
public let kMCSessionMaximumNumberOfPeers = 8
