/// What came of the last comparison of digits with a peer, as it is remembered.
public enum Verified: String, Sendable, Hashable, Codable, CaseIterable {
    /// They were equal, and a person has trusted the peer for it.
    case matched
    /// They were not: a man in the middle, or another peer than expected.
    case mismatched
}
