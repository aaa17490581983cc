/// The stored result of the last comparison of digits with a peer.
public enum Verified: String, Sendable, Hashable, Codable, CaseIterable {
    /// The digits were equal, and a user has therefore trusted the peer.
    case matched
    /// The digits differed: there was a man in the middle, or the peer was another one than expected.
    case mismatched
}
