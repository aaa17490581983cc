import EarshotWire
import NIOCore
import Testing

@testable import Earshot

/// What a sender has taken note of counts at once, and not only when it is on disk.
@Suite(.timeLimit(.minutes(1))) struct ReceiptNotesTests {
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

    /// Noted a moment before the connection was lost: on the next one only the other is told again.
    @Test func readIsNotToldAgainAfterNoted() async throws {
        let bob = try await TestNode("bob") { $0.fromUnknown = .accept }
        let raw = try await RawPeer(to: bob)
        try await raw.prove()
        let session = try await raw.join()
        let ids = [MessageID.random(), .random(), .random()]
        for (sequence, id) in ids.enumerated() {
            try await raw.send(raw.message("x", in: session, sequence: UInt64(sequence + 1), id: id))
            try await raw.next { $0 == .messageReceipts([MessageReceipt(id: id, outcome: .delivered)]) ? () : nil }
        }
        for id in ids {
            _ = try await bob.node.markRead(id, from: nil)
            try await raw.next { $0 == .messageReceipts([MessageReceipt(id: id, outcome: .read)]) ? () : nil }
        }
        try await raw.send(.messageReceipts([ids[0], ids[2]].map { MessageReceipt(id: $0, outcome: .noted) }))
        try await raw.roundTrip()
        let again = try await raw.back(to: bob, in: session)
        let told = try await again.next { if case .messageReceipts(let receipts) = $0 { receipts } else { nil } }
        #expect(told == [MessageReceipt(id: ids[1], outcome: .read)])
        // Nor after a restart in order.
        await bob.stop()
        let bob2 = try await TestNode("bob", in: bob.state)
        #expect(try await bob2.node.store.receipts(for: raw.id) == [ids[1]])
        await bob2.stop()
    }
}
