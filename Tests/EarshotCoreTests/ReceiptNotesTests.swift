import EarshotWire
import OrderedCollections
import Testing

@testable import EarshotCore

/// A sender's acknowledgement of a receipt counts at once, and not only when it is on disk.
@Suite struct ReceiptNotesTests {
    private func id(_ number: UInt64) -> MessageID { MessageID(high: 0, low: number) }

    @Test func itCountsFromItsComingUntilItIsOnDisk() {
        var notes = ReceiptNotes()
        #expect(notes.take().isEmpty && notes.count == 0)
        notes.add([self.id(1), self.id(2), self.id(1)], by: peerID(1))
        #expect(notes.count == 2)
        #expect(notes.contains(self.id(1), by: peerID(1)) && !notes.contains(self.id(1), by: peerID(2)))
        #expect(notes.take().count == 1)
        #expect(notes.count == 0 && notes.contains(self.id(2), by: peerID(1)))
        notes.add([self.id(3)], by: peerID(1))
        _ = notes.take()
        notes.settled()
        #expect(!notes.contains(self.id(1), by: peerID(1)) && notes.contains(self.id(3), by: peerID(1)))
        notes.settled()
        #expect(!notes.contains(self.id(3), by: peerID(1)))
    }

    /// One commit contains the notes in the order of their arrival, each once.
    @Test func theyAreWrittenInTheirOrder() {
        var notes = ReceiptNotes()
        for sender in [UInt8(3), 1, 2, 1] { notes.add([self.id(9), self.id(UInt64(sender)), self.id(9)], by: peerID(sender)) }
        let taken = notes.take()
        #expect(Array(taken.keys) == [3, 1, 2].map { peerID($0) })
        #expect(taken.values.map { Array($0) } == [3, 1, 2].map { [self.id(9), self.id($0)] })
    }
}
