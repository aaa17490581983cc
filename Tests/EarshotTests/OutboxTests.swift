import EarshotWire
import NIOCore
import Testing

@testable import Earshot

@Suite struct OutboxTests {
    private func expectRemoved(_ sequence: UInt64, from outbox: inout Outbox, _ expected: Bool = true) {
        let removed = outbox.remove(MessageID(high: 0, low: sequence))
        #expect(removed == expected)
    }

    private func sent(_ outbox: inout Outbox) -> [UInt64] { outbox.takeUnsent().map(\.sequence) }

    private func entry(_ sequence: UInt64, size: Int = 0) -> Outbox.Entry {
        Outbox.Entry(
            id: MessageID(high: 0, low: sequence), sequence: sequence, contentType: "x", body: ByteBuffer(repeating: 0, count: size),
            sentAtMilliseconds: 0)
    }

    @Test func eachGoesOutOnceAConnectionInOrder() {
        var outbox = Outbox()
        for sequence in UInt64(1)...3 { outbox.append(self.entry(sequence)) }
        #expect(self.sent(&outbox) == [1, 2, 3])
        #expect(self.sent(&outbox) == [])
        outbox.append(self.entry(4))
        #expect(self.sent(&outbox) == [4])
        self.expectRemoved(2, from: &outbox)
        self.expectRemoved(2, from: &outbox, false)
        outbox.connectionLost()
        outbox.append(self.entry(5))
        #expect(self.sent(&outbox) == [1, 3, 4, 5])
    }

    @Test func whatIsRemovedBeforeItWentOutDoesNot() {
        var outbox = Outbox()
        for sequence in UInt64(1)...3 { outbox.append(self.entry(sequence)) }
        self.expectRemoved(2, from: &outbox)
        #expect(self.sent(&outbox) == [1, 3])
    }

    @Test func queuedMessageBytes() {
        var outbox = Outbox()
        let quarter = EarshotLimits.queuedMessageBytes / 4 - EarshotLimits.messageOverhead
        for sequence in UInt64(1)...3 { outbox.append(self.entry(sequence, size: quarter)) }
        outbox.append(self.entry(4, size: quarter - 1))
        #expect(outbox.bytes == EarshotLimits.queuedMessageBytes - 1)
        #expect(outbox.hasRoom)
        outbox.append(self.entry(5))
        #expect(!outbox.hasRoom)
        self.expectRemoved(1, from: &outbox)
        #expect(outbox.hasRoom)
        for sequence in UInt64(2)...5 { self.expectRemoved(sequence, from: &outbox) }
        #expect(outbox.isEmpty)
        #expect(outbox.bytes == 0)
    }

    @Test func messageOverhead() {
        var outbox = Outbox()
        for sequence in 1...UInt64(EarshotLimits.queuedMessageBytes / EarshotLimits.messageOverhead) { outbox.append(self.entry(sequence)) }
        #expect(!outbox.hasRoom)
    }
}
