public import EarshotWire
public import FoundationEssentials

/// What this machine's rules say of one peer.
public struct PeerPolicy: Sendable, Hashable, Codable {
    /// Which peer.
    public let peerID: PeerID
    /// Its label, untrusted.
    public let peerName: String
    /// What is thought of it.
    public let trust: Trust
    /// Who has decided that; `nil` where no decision was made.
    public let trustSource: TrustSource?
    /// When trust ends by itself.
    public let trustExpiresAt: Date?
    /// What came of the last comparison of digits.
    public let verified: Verified?
    /// One for each action, but of `group` one for each group that both are members of.
    public let decisions: [PolicyDecision]

    private enum CodingKeys: String, CodingKey {
        case peerID = "peerId"
        case peerName, trust, trustSource, trustExpiresAt, verified, decisions
    }
}
