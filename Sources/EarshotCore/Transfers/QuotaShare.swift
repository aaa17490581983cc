package import EarshotWire

/// What the unfinished transfers of one peer may hold together of the quota, so that none keeps everybody else out.
package struct QuotaShare: Sendable, Hashable {
    /// Whose transfers.
    package let peer: PeerID
    /// Of the quota, in quarters.
    package let quarters: UInt64

    /// A peer's share.
    package init(of peer: PeerID, isTrusted: Bool) {
        self.peer = peer
        self.quarters = isTrusted ? EarshotLimits.trustedPeerQuarters : EarshotLimits.peerQuarters
    }

    /// In bytes, of a quota in bytes.
    package func bytes(of quota: UInt64) -> UInt64 {
        let (whole, rest) = quota.quotientAndRemainder(dividingBy: 4)
        return whole * self.quarters + rest * self.quarters / 4
    }

    /// In words, for errors.
    package var words: String {
        switch self.quarters {
        case 1: "a quarter"
        case 3: "three quarters"
        default: "\(self.quarters) quarters"
        }
    }
}
