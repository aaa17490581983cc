import EarshotWire
import Testing

@testable import EarshotCore

/// The messages that were read here, until their senders have acknowledged that.
@Suite struct UnnotedReadsTests {
    private func ids(_ range: Range<UInt64>) -> [MessageID] { range.map { MessageID(high: 1, low: $0) } }

    @Test func whatWasNotReadIsNotNoted() {
        var reads = UnnotedReads()
        reads.insert(self.ids(0..<3), of: peerID(1))
        #expect(reads.noted(self.ids(0..<3), by: peerID(2)) == [], "another's")
        #expect(reads.noted(self.ids(2..<5), by: peerID(1)) == self.ids(2..<3))
        #expect(reads.noted(self.ids(2..<5), by: peerID(1)) == [], "once")
        #expect(reads.all(of: peerID(1)) == self.ids(0..<2))
        #expect(reads.count == 2)
    }

    @Test func theOldestGiveWay() {
        var reads = UnnotedReads(limit: 3)
        reads.insert(self.ids(0..<3), of: peerID(1))
        #expect(reads.all(of: peerID(1)) == self.ids(0..<3))
        reads.insert(self.ids(3..<4), of: peerID(2))
        #expect(reads.all(of: peerID(1)) == self.ids(1..<3))
        #expect(reads.all(of: peerID(2)) == self.ids(3..<4))
        #expect(reads.count == 3)
    }

    @Test func readingAndNotingForLongKeepsNothing() {
        var reads = UnnotedReads(limit: 3)
        for low in 0..<1000 {
            reads.insert(self.ids(UInt64(low)..<UInt64(low) + 1), of: peerID(1))
            #expect(reads.noted(self.ids(UInt64(low)..<UInt64(low) + 1), by: peerID(1)).count == 1)
        }
        #expect(reads.count == 0)
        #expect(reads.all(of: peerID(1)) == [])
    }

    @Test func theEndOfASession() {
        var reads = UnnotedReads()
        reads.load(self.ids(0..<3), of: peerID(1))
        reads.load(self.ids(0..<3), of: peerID(2))
        reads.removeAll(of: peerID(1))
        #expect(reads.all(of: peerID(1)) == [])
        #expect(reads.count == 3)
        #expect(!reads.isLoaded(peerID(1)) && reads.isLoaded(peerID(2)), "the disk may have kept some")
    }
}
