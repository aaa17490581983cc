import Testing

@testable import EarshotCore

/// The part of the quota that the unfinished transfers of one peer may use.
@Suite struct QuotaShareTests {
    @Test func aStrangerHasOneQuarterAndATrustedPeerThree() {
        let (stranger, trusted) = (QuotaShare(of: peerID(1), isTrusted: false), QuotaShare(of: peerID(1), isTrusted: true))
        #expect(EarshotLimits.peerQuarters == 1 && EarshotLimits.trustedPeerQuarters == 3)
        let cases: [(UInt64, UInt64, UInt64)] = [(0, 0, 0), (3, 0, 2), (4, 1, 3), (7, 1, 5), (20 << 30, 5 << 30, 15 << 30)]
        for (quota, quarter, three) in cases {
            #expect(stranger.bytes(of: quota) == quarter && trusted.bytes(of: quota) == three)
        }
        #expect(stranger.bytes(of: .max) == UInt64.max / 4)
        #expect(trusted.bytes(of: .max) == UInt64.max / 4 * 3 + 2)
    }
}
