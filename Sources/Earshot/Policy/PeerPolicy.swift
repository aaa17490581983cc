public import EarshotWire
public import FoundationEssentials

/// The rules of this machine that apply to one peer.
public struct PeerPolicy: Sendable, Hashable, Codable {
    /// The peer's id.
    public let peerID: PeerID
    /// The peer's display name, which is untrusted.
    public let peerName: String
    /// The peer's trust.
    public let trust: Trust
    /// The source of the trust; `nil` if no decision was made.
    public let trustSource: TrustSource?
    /// The time at which trust expires.
    public let trustExpiresAt: Date?
    /// The result of the last comparison of digits.
    public let verified: Verified?
    /// The decisions: one per action. For `group`, one per group that both are members of.
    public let decisions: [PolicyDecision]

    private enum CodingKeys: String, CodingKey {
        case peerID = "peerId"
        case peerName, trust, trustSource, trustExpiresAt, verified, decisions
    }
}
