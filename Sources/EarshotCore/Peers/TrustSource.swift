/// Who trusts a peer.
public enum TrustSource: String, Sendable, Hashable, Codable, CaseIterable {
    /// A person, by `earshot trust`, `earshot accept --always` or `earshot block`.
    case person
    /// An authority of the settings, which signed the peer's certificate.
    case authority
}
