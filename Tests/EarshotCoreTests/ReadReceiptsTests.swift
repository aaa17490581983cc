import EarshotWire
import Testing

@testable import EarshotCore

/// The read receipts of this machine, and the order of a peer's messages after a refusal.
@Suite struct ReadReceiptsTests {
    private func ids(_ range: Range<UInt64>) -> [MessageID] { range.map { MessageID(high: 0, low: $0) } }

    @Test func notesAreWrittenTogetherUntilThereAreEnough() {
        var receipts = ReadReceipts()
        let most = UInt64(WireLimits.receiptsPerFrame)
        receipts.insert(self.ids(0..<most), of: peerID(1))
        #expect(receipts.noted(self.ids(most..<most + 1), by: peerID(1)) == .nothing, "the peer invented the id")
        #expect(receipts.noted(self.ids(0..<1), by: peerID(1)) == .scheduleWrite)
        #expect(receipts.noted(self.ids(1..<most - 1), by: peerID(1)) == .nothing, "a write is scheduled")
        #expect(receipts.noted(self.ids(most - 1..<most), by: peerID(1)) == .write)
        #expect(receipts.isNoting && receipts.gatheringNotes == Int(most) && receipts.count == 0)
        #expect(receipts.takeNotes() == [.noted(self.ids(0..<most), by: peerID(1))])
        #expect(!receipts.isNoting)
        #expect(receipts.takeNotes() == [])
    }

    @Test func aLoadIgnoresReceiptsThatWereNotedMeanwhile() {
        var receipts = ReadReceipts()
        receipts.insert(self.ids(0..<2), of: peerID(1))
        _ = receipts.noted(self.ids(0..<1), by: peerID(1))
        #expect(receipts.loaded([], of: peerID(1)) == false, "no load is under way")
        #expect(receipts.beginLoading(peerID(1)) == true)
        #expect(receipts.beginLoading(peerID(1)) == false, "a load is under way")
        _ = receipts.takeNotes()
        receipts.notesSettled()
        _ = receipts.noted(self.ids(1..<2), by: peerID(1))
        #expect(receipts.loaded(self.ids(0..<3), of: peerID(1)) == true)
        #expect(receipts.isLoaded(peerID(1)) && receipts.all(of: peerID(1)) == self.ids(2..<3))
    }

    @Test func aLoadThatFailedCanBeginAgain() {
        var receipts = ReadReceipts()
        #expect(receipts.beginLoading(peerID(1)) == true)
        #expect(receipts.loaded(nil, of: peerID(1)) == true)
        #expect(!receipts.isLoaded(peerID(1)))
        #expect(receipts.beginLoading(peerID(1)) == true)
    }

    @Test func onlyAResumedMessageEndsARefusal() {
        var order = IncomingOrder()
        #expect(order.received(isResumed: false) == true, "the first message")
        #expect(order.received(isResumed: false) == false)
        order.refuse()
        #expect(order.received(isResumed: false) == false)
        #expect(order.isRefusing)
        #expect(order.received(isResumed: true) == true)
        #expect(!order.isRefusing)
    }
}
