import EarshotWire
import NIOCore
import Testing

@testable import EarshotCore

@Suite struct OutboxTests {
    private func id(_ sequence: UInt64) -> MessageID { MessageID(high: 0, low: sequence) }

    private func expectRemoved(_ sequence: UInt64, from outbox: inout Outbox, _ expected: Bool = true) {
        let removed = outbox.remove(self.id(sequence))
        #expect(removed == expected)
    }

    private func expectAcknowledged(_ sequence: UInt64, in outbox: inout Outbox, _ expected: Bool = true) {
        let known = outbox.acknowledged(self.id(sequence))
        #expect(known == expected)
    }

    private func sent(_ outbox: inout Outbox) -> [UInt64] { outbox.takeUnsent().entries.map(\.sequence) }

    private func entry(_ sequence: UInt64, size: Int = 0, isQueued: Bool = false, isLoaded: Bool = true) -> Outbox.Entry {
        Outbox.Entry(
            id: self.id(sequence), sequence: sequence, contentType: "x", size: size,
            body: isLoaded ? ByteBuffer(repeating: 0, count: size) : nil, sentAtMilliseconds: 0, isQueued: isQueued)
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

    /// A message may have arrived once a connection was given it. Neither the loss of that connection nor a refusal proves the contrary.
    @Test func mayHaveArrived() {
        var outbox = Outbox()
        outbox.append(self.entry(1, isQueued: true))
        #expect(outbox.mayHaveArrived(self.id(1)) == false)
        #expect(self.sent(&outbox) == [1])
        #expect(outbox.mayHaveArrived(self.id(1)) == true)
        outbox.append(self.entry(2))
        outbox.connectionLost()
        #expect(outbox.mayHaveArrived(self.id(1)) == true && outbox.mayHaveArrived(self.id(2)) == false)
        outbox.loaded(self.id(1), ByteBuffer())
        #expect(self.sent(&outbox) == [1, 2])
        _ = outbox.refused(self.id(1))
        #expect(outbox.mayHaveArrived(self.id(1)) == true && outbox.mayHaveArrived(self.id(2)) == true)
        self.expectRemoved(1, from: &outbox)
        #expect(outbox.mayHaveArrived(self.id(1)) == nil, "it is not there")
    }

    @Test func whatIsRemovedBeforeItWentOutDoesNot() {
        var outbox = Outbox()
        for sequence in UInt64(1)...3 { outbox.append(self.entry(sequence)) }
        self.expectRemoved(2, from: &outbox)
        #expect(self.sent(&outbox) == [1, 3])
    }

    /// The bytes in flight are bounded. The rest follows as messages are acknowledged.
    @Test func queuedMessageBytes() {
        var outbox = Outbox()
        let quarter = EarshotLimits.queuedMessageBytes / 4 - EarshotLimits.messageOverhead
        for sequence in UInt64(1)...3 { outbox.append(self.entry(sequence, size: quarter)) }
        outbox.append(self.entry(4, size: quarter - 1))
        for sequence in UInt64(5)...6 { outbox.append(self.entry(sequence)) }
        #expect(self.sent(&outbox) == [1, 2, 3, 4, 5], "one byte was left")
        #expect(!outbox.hasRoom)
        #expect(self.sent(&outbox) == [])
        self.expectAcknowledged(2, in: &outbox)
        #expect(self.sent(&outbox) == [6])
        for sequence in [1, 3, 4, 5, 6] as [UInt64] { self.expectAcknowledged(sequence, in: &outbox) }
        self.expectAcknowledged(6, in: &outbox, false)
        #expect(outbox.isEmpty)
        #expect(outbox.bytes == 0)
    }

    @Test func smallMessagesCountWithTheirOverhead() {
        var outbox = Outbox()
        let fitting = UInt64(EarshotLimits.queuedMessageBytes / EarshotLimits.messageOverhead)
        for sequence in 1...fitting + 1 { outbox.append(self.entry(sequence)) }
        #expect(self.sent(&outbox).count == Int(fitting))
    }

    @Test func bodiesOnDiskAreAskedForInOrderAndWithinTheBound() {
        var outbox = Outbox()
        let half = EarshotLimits.queuedMessageBytes / 2 - EarshotLimits.messageOverhead
        outbox.append(self.entry(1))
        for sequence in UInt64(2)...4 { outbox.append(self.entry(sequence, size: half, isQueued: true, isLoaded: false)) }
        outbox.append(self.entry(5))
        let batch = outbox.takeUnsent()
        #expect(batch.entries.map(\.sequence) == [1], "nothing overtakes what is on disk")
        #expect(batch.missing == [self.id(2), self.id(3)])
        for id in batch.missing { outbox.loaded(id, ByteBuffer(repeating: 0, count: half)) }
        #expect(outbox.loadedBytes == EarshotLimits.queuedMessageBytes)
        #expect(self.sent(&outbox) == [2, 3])
        self.expectAcknowledged(1, in: &outbox)
        self.expectAcknowledged(2, in: &outbox)
        let rest = outbox.takeUnsent()
        #expect(rest.entries.isEmpty)
        #expect(rest.missing == [self.id(4)])
        outbox.connectionLost()
        #expect(outbox.loadedBytes == 0)
        #expect(outbox.takeUnsent().missing == [self.id(3), self.id(4)])
    }

    @Test func bodiesOfQueuedMessagesStayInMemoryWithinTheBound() {
        var outbox = Outbox()
        let half = EarshotLimits.queuedMessageBytes / 2 - EarshotLimits.messageOverhead
        for sequence in UInt64(1)...3 { outbox.append(self.entry(sequence, size: half, isQueued: true)) }
        #expect(outbox.loadedBytes == EarshotLimits.queuedMessageBytes)
        let batch = outbox.takeUnsent()
        #expect(batch.entries.map(\.sequence) == [1, 2])
        self.expectRemoved(1, from: &outbox)
        #expect(outbox.takeUnsent().missing == [self.id(3)])
    }

    @Test func afterARefusalAllIsAnsweredBeforeTheNextGoesOutAsTheFirstOfANewBeginning() {
        var outbox = Outbox()
        for sequence in UInt64(1)...3 { outbox.append(self.entry(sequence)) }
        #expect(self.sent(&outbox) == [1, 2, 3])
        #expect(outbox.refused(self.id(1))?.sequence == 1)
        #expect(outbox.refused(self.id(1)) == nil)
        outbox.append(self.entry(4))
        #expect(self.sent(&outbox) == [])
        #expect(outbox.refused(self.id(2)) != nil)
        #expect(outbox.refused(self.id(3)) != nil)
        outbox.append(self.entry(5))
        let batch = outbox.takeUnsent()
        #expect(batch.isResumed)
        #expect(batch.entries.map(\.sequence) == [4], "alone, until it is known whether there is room")
        #expect(self.sent(&outbox) == [])
        self.expectAcknowledged(4, in: &outbox)
        let rest = outbox.takeUnsent()
        #expect(!rest.isResumed)
        #expect(rest.entries.map(\.sequence) == [5])
    }

    @Test func queuedMessagesStayWhenTheyAreRefused() {
        var outbox = Outbox()
        for sequence in UInt64(1)...3 { outbox.append(self.entry(sequence, isQueued: true)) }
        #expect(self.sent(&outbox) == [1, 2, 3])
        for sequence in UInt64(1)...3 { #expect(outbox.refused(self.id(sequence)) != nil) }
        #expect(outbox.isPaused)
        #expect(outbox.refusals == 1)
        #expect(self.sent(&outbox) == [])
        outbox.append(self.entry(4))
        #expect(outbox.waitingIDs == [self.id(4)])
        outbox.resume()
        let batch = outbox.takeUnsent()
        #expect(batch.isResumed)
        #expect(batch.entries.map(\.sequence) == [1])
        #expect(outbox.refused(self.id(1)) != nil)
        #expect(outbox.refusals == 2)
        outbox.resume()
        #expect(self.sent(&outbox) == [1])
        self.expectAcknowledged(1, in: &outbox)
        #expect(outbox.refusals == 0)
        #expect(self.sent(&outbox) == [2, 3, 4])
    }

    /// The answer to an abandoned probe may never arrive.
    @Test func aProbeThatIsGivenUpIsFollowedByAnother() {
        var outbox = Outbox()
        for sequence in UInt64(1)...2 { outbox.append(self.entry(sequence)) }
        #expect(self.sent(&outbox) == [1, 2])
        #expect(outbox.refused(self.id(1)) != nil)
        #expect(outbox.refused(self.id(2)) != nil)
        for sequence in UInt64(3)...4 { outbox.append(self.entry(sequence)) }
        #expect(self.sent(&outbox) == [3])
        self.expectRemoved(3, from: &outbox)
        let batch = outbox.takeUnsent()
        #expect(batch.isResumed)
        #expect(batch.entries.map(\.sequence) == [4])
    }

    @Test func aNewConnectionBeginsWithoutARefusal() {
        var outbox = Outbox()
        for sequence in UInt64(1)...2 { outbox.append(self.entry(sequence, isQueued: true)) }
        #expect(self.sent(&outbox) == [1, 2])
        #expect(outbox.refused(self.id(1)) != nil)
        outbox.connectionLost()
        #expect(!outbox.isPaused)
        let batch = outbox.takeUnsent()
        #expect(batch.missing == [self.id(1), self.id(2)])
        for id in batch.missing { outbox.loaded(id, ByteBuffer()) }
        let again = outbox.takeUnsent()
        #expect(!again.isResumed)
        #expect(again.entries.map(\.sequence) == [1, 2])
    }
}
