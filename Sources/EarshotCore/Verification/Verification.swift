public import EarshotWire

/// How two persons' comparison of digits with one peer stands.
public struct Verification: Sendable, Hashable {
    /// How far it has come.
    public enum State: String, Sendable, Hashable, Codable, CaseIterable {
        /// There is none.
        case none
        /// The peer's person has asked for it, and none here has.
        case requested
        /// A person here has asked for it, and the peer's person is waited for.
        case waiting
        /// The digits are there, and both persons compare them.
        case ready
        /// They were equal, by a person's word here.
        case matched
        /// They were not, by a person's word, or the peer has tried to choose them.
        case mismatched
        /// Given up, here or there.
        case cancelled
        case timedOut = "timed_out"
        case failed
    }

    /// With whom.
    public let peerID: PeerID
    /// Its label, untrusted.
    public let peerName: String
    /// How far it has come.
    public let state: State
    /// Six digits, once they are there.
    public let digits: String?
    /// Why it has failed.
    public let error: EarshotError.Code?
    /// The same in words, which may quote the peer.
    public let errorMessage: String?
    /// Until when it is waited for, or the digits are shown.
    package let end: WallTime?
}
