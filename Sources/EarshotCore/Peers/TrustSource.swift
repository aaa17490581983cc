/// The source of the trust in a peer.
public enum TrustSource: String, Sendable, Hashable, Codable, CaseIterable {
    /// A user's decision, by `earshot trust`, `earshot accept --always` or `earshot block`.
    case person
    /// A configured authority that signed the peer's certificate.
    case authority
}
