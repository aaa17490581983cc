import EarshotWire
import Testing

@testable import EarshotCore

/// The handling of received messages.
@Suite struct ReceivingTests {
    private let bob = peerID(1)

    private func bench() throws -> (alice: CoreBench, link: LinkID, session: SessionID) {
        var alice = CoreBench()
        let link = try alice.prove(self.bob, name: "bob")
        let session = try alice.join(on: link)
        _ = alice.sent(on: link)
        return (alice, link, session)
    }

    private func receipts(_ alice: inout CoreBench, _ link: LinkID) -> [MessageReceipt.Outcome] {
        alice.sent(on: link).flatMap { frame -> [MessageReceipt.Outcome] in
            if case .messageReceipts(let receipts) = frame { receipts.map(\.outcome) } else { [] }
        }
    }

    private let id = MessageID(high: 0, low: 1)

    @Test func aReceiptFollowsTheCommit() throws {
        var (alice, link, session) = try self.bench()
        alice.isDiskHeld = true
        alice.receive("x", self.id, in: session, on: link)
        #expect(self.receipts(&alice, link).isEmpty && alice.received.isEmpty)
        alice.releaseDisk()
        #expect(self.receipts(&alice, link) == [.delivered] && alice.received.map(\.id) == [self.id])
        alice.receive("x", self.id, in: session, on: link)
        #expect(self.receipts(&alice, link) == [.delivered] && alice.received.count == 1, "a repeat is acknowledged, and told to nobody")
    }

    /// A program without a disk has a message once it has taken it. Until then a sender that repeats the message gets no receipt.
    @Test func whatIsHeldIsAcknowledgedWhenItIsTaken() throws {
        var (alice, link, session) = try self.bench()
        alice.holdsMessages = true
        for _ in 0..<2 {
            alice.receive("x", self.id, in: session, on: link)
            #expect(self.receipts(&alice, link).isEmpty && alice.received.map(\.id) == [self.id])
        }
        alice.handle(.taken([self.id], of: self.bob))
        #expect(self.receipts(&alice, link) == [.delivered])
        alice.lose(link)
        #expect(alice.handle(.taken([self.id], of: self.bob)).isEmpty)
    }

    @Test func whatCannotBeKeptIsRefused() throws {
        var (alice, link, session) = try self.bench()
        alice.refusal = .inboxFull
        alice.receive("x", self.id, in: session, on: link)
        #expect(self.receipts(&alice, link) == [.inboxFull] && alice.received.isEmpty)
    }

    /// The sender has repeated the message on the next connection, where it would misread the refusal.
    @Test func aRefusalIsOfItsConnection() throws {
        var (alice, link, session) = try self.bench()
        alice.refusal = .storage
        alice.isDiskHeld = true
        alice.receive("x", self.id, in: session, on: link)
        alice.lose(link)
        let next = try alice.prove(self.bob)
        alice.frame(.sessionResume(session), on: next)
        alice.releaseDisk()
        #expect(self.receipts(&alice, next).isEmpty)
        alice.refusal = nil
        alice.receive("x", self.id, in: session, on: next)
        #expect(self.receipts(&alice, next) == [.delivered])
    }

    /// A message of another session is refused, and the store is told so with the next ones, so that none of them overtakes it.
    @Test func nothingOvertakesARefusedOne() throws {
        var (alice, link, session) = try self.bench()
        alice.receive("x", self.id, in: SessionID(high: 7, low: 7), on: link)
        #expect(self.receipts(&alice, link) == [.refused])
        alice.receive("y", MessageID(high: 0, low: 2), in: session, on: link)
        alice.receive("z", MessageID(high: 0, low: 3), in: session, mode: .resumed, on: link)
        alice.receive("w", MessageID(high: 0, low: 4), in: session, on: link)
        #expect(alice.inbox.map(\.followsRefusal) == [true, false, false])
        #expect(alice.inbox.map(\.isResumed) == [true, true, false], "the first of a connection, and one that says so")
    }

    @Test func withoutASessionNothingIsKept() throws {
        var alice = CoreBench()
        let link = try alice.prove(self.bob)
        alice.receive("x", self.id, in: SessionID(high: 7, low: 7), on: link)
        alice.receive("x", self.id, in: SessionID(high: 7, low: 7), mode: .unreliable, on: link)
        #expect(alice.inbox.isEmpty && alice.events.allSatisfy { if case .liveMessages = $0 { false } else { true } })
    }

    // MARK: Read receipts

    @Test func aSenderHearsThatItWasReadUntilItHasTakenNote() throws {
        var (alice, link, session) = try self.bench()
        alice.receive("x", self.id, in: session, on: link)
        _ = alice.sent(on: link)
        alice.handle(.read([self.id], of: self.bob))
        #expect(self.receipts(&alice, link) == [.read])
        alice.lose(link)
        let next = try alice.prove(self.bob)
        alice.frame(.sessionResume(session), on: next)
        #expect(self.receipts(&alice, next) == [.read])
        alice.receipt(self.id, .noted, on: next)
        alice.receipt(self.id, .noted, on: next)
        #expect(alice.notedOnDisk.isEmpty)
        alice.advance(EarshotLimits.noteDelay)
        #expect(alice.notedOnDisk == [self.id])
    }

    @Test func receiptsThatNobodyWants() throws {
        var alice = CoreBench(change: { $0.receipts = false })
        let link = try alice.prove(self.bob)
        _ = try alice.join(on: link)
        #expect(!alice.core.wantsReceipts(self.bob))
        #expect(!alice.effects.contains { if case .loadReceipts = $0 { true } else { false } })
    }
}
