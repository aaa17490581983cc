package import EarshotWire

/// The part of the quota that the unfinished transfers of one peer may use together, so that no peer blocks all others.
package struct QuotaShare: Sendable, Hashable {
    /// The peer whose transfers are limited.
    package let peer: PeerID
    /// The share, in quarters of the quota.
    package let quarters: UInt64

    /// Creates a peer's share.
    package init(of peer: PeerID, isTrusted: Bool) {
        self.peer = peer
        self.quarters = isTrusted ? EarshotLimits.trustedPeerQuarters : EarshotLimits.peerQuarters
    }

    /// Returns the share in bytes of a quota in bytes.
    package func bytes(of quota: UInt64) -> UInt64 {
        let (whole, rest) = quota.quotientAndRemainder(dividingBy: 4)
        return whole * self.quarters + rest * self.quarters / 4
    }

    /// The share as text, for errors.
    package var words: String {
        switch self.quarters {
        case 1: "a quarter"
        case 3: "three quarters"
        default: "\(self.quarters) quarters"
        }
    }
}
