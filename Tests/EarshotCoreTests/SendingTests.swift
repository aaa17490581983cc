import EarshotWire
import NIOCore
import OrderedCollections
import Testing

@testable import EarshotCore

/// The outcome of sent messages.
@Suite struct SendingTests {
    private let bob = peerID(1)

    /// Returns a bench with a session.
    private func bench(change: (inout CoreSettings) -> Void = { _ in }) throws -> (alice: CoreBench, link: LinkID, session: SessionID) {
        var alice = CoreBench(change: change)
        let link = try alice.prove(self.bob, name: "bob")
        let session = try alice.join(on: link)
        _ = alice.sent(on: link)
        return (alice, link, session)
    }

    private func status(_ outcome: MessageOutcome?) -> Message.Status? { try? outcome?.get().recipients.first?.status }
    private func error(_ outcome: MessageOutcome?) -> EarshotError.Code? { try? outcome?.get().recipients.first?.error }

    @Test func aCallWaitsUntilThePeerHasIt() throws {
        var (alice, link, session) = try self.bench()
        #expect(alice.send("hello", to: self.bob) == nil)
        let message = try #require(alice.messages(on: link).first)
        #expect(message.session == session && message.mode == .reliable && message.body == ByteBuffer(string: "hello"))
        alice.receipt(message.id, .delivered, on: link)
        #expect(self.status(alice.outcome(of: alice.lastCall)) == .delivered)
        alice.receipt(message.id, .delivered, on: link)
        alice.receipt(message.id, .read, on: link)
        #expect(alice.core.outgoingMessage(message.id)?.recipients.first?.status == .read)
    }

    /// Unacknowledged messages are sent again on the next connection, in order and with the same sequence.
    @Test func whatIsNotAcknowledgedGoesOutAgain() throws {
        var (alice, link, session) = try self.bench()
        for number in 0..<3 { alice.send("\(number)", to: self.bob) }
        let first = alice.messages(on: link)
        alice.lose(link)
        let next = try alice.prove(self.bob, name: "bob")
        alice.frame(.sessionResume(session), on: next)
        #expect(alice.messages(on: next) == first && first.count == 3)
    }

    @Test func nothingGoesOutAfterItsDeadline() throws {
        var (alice, link, session) = try self.bench()
        alice.lose(link)
        alice.send(to: self.bob, timeout: .seconds(3))
        let call = alice.lastCall
        alice.advance(.seconds(3) - .nanoseconds(1))
        #expect(alice.outcome(of: call) == nil)
        alice.advance(.nanoseconds(1))
        #expect(self.error(alice.outcome(of: call)) == .notSent)
        let next = try alice.prove(self.bob)
        alice.frame(.sessionResume(session), on: next)
        #expect(alice.messages(on: next).isEmpty)
    }

    /// After a suspension, all overdue deadlines are handled before anything else.
    @Test func aDeadlineThatWasSleptThrough() throws {
        var (alice, link, session) = try self.bench()
        alice.lose(link)
        alice.send(to: self.bob, queue: true, timeout: .seconds(3600))
        alice.sleep(.seconds(4000))
        let next = try alice.prove(self.bob)
        alice.frame(.sessionResume(session), on: next)
        #expect(alice.messages(on: next).isEmpty)
        #expect(alice.core.outgoingMessages.first?.recipients.first?.error == .notSent)
    }

    /// A lost connection may have delivered the messages that it was given.
    @Test func onlyWhatNoConnectionWasGivenIsNotSent() throws {
        var (alice, link, _) = try self.bench()
        alice.send("given", to: self.bob)
        let given = alice.lastCall
        alice.lose(link)
        alice.send("kept", to: self.bob)
        let kept = alice.lastCall
        alice.advance(EarshotLimits.messageTimeout)
        #expect(self.status(alice.outcome(of: given)) == .unconfirmed && self.error(alice.outcome(of: given)) == .unconfirmed)
        #expect(self.status(alice.outcome(of: kept)) == .failed && self.error(alice.outcome(of: kept)) == .notSent)
        let words = try alice.outcome(of: kept)?.get().recipients.first?.errorMessage
        #expect(words?.hasPrefix("the message could not be sent to bob in time; it never left this machine") == true)
    }

    /// An earlier attempt with the same id may have delivered the message.
    @Test(arguments: [false, true]) func whatWasUnconfirmedOnceIsNotSaidToBeUnsent(queue: Bool) throws {
        var (alice, link, _) = try self.bench()
        let (first, second) = (MessageID(high: 0, low: 7), MessageID(high: 0, low: 8))
        alice.send("given", to: self.bob, id: first, timeout: .seconds(1))
        alice.lose(link)
        alice.send("kept", to: self.bob, id: second, timeout: .seconds(1))
        alice.advance(.seconds(1))
        for _ in 0..<2 {
            alice.send("given", to: self.bob, id: first, queue: queue, timeout: .seconds(1))
            alice.send("kept", to: self.bob, id: second, queue: queue, timeout: .seconds(1))
            alice.advance(.seconds(1))
            #expect(alice.core.outgoingMessage(first)?.recipients.first?.status == .unconfirmed)
            #expect(alice.core.outgoingMessage(second)?.recipients.first?.error == .notSent)
        }
    }

    @Test func anUnansweredInvitationIsNamed() throws {
        var alice = CoreBench()
        _ = try alice.prove(self.bob, name: "bob")
        alice.call(.setTrust(.trusted, self.bob.description, until: nil))
        alice.send(to: self.bob)
        let call = alice.lastCall
        alice.advance(EarshotLimits.messageTimeout)
        #expect(self.error(alice.outcome(of: call)) == .notSent)
        let words = try alice.outcome(of: call)?.get().recipients.first?.errorMessage
        #expect(words?.contains("bob has not answered the invitation yet") == true)
    }

    // MARK: Queued messages

    @Test func aQueuedMessageIsOnDiskWhenItsCallIsAnswered() throws {
        var (alice, link, _) = try self.bench()
        alice.isDiskHeld = true
        #expect(alice.send(to: self.bob, queue: true) == nil)
        #expect(alice.messages(on: link).isEmpty, "not before it is safe")
        let call = alice.lastCall
        alice.releaseDisk()
        let sent = try #require(try alice.outcome(of: call)?.get())
        #expect(alice.outboxOnDisk[sent.id] != nil)
        #expect(alice.messages(on: link).map(\.id) == [sent.id])
    }

    /// A restart would find the message in its old state. If the clock was set back, it would be sent after later messages.
    @Test func whatCouldNotBeSettledIsWrittenAgain() throws {
        let full = EarshotError(.noSpace, "full")
        var (alice, link, _) = try self.bench()
        let sent = try #require(try alice.send(to: self.bob, queue: true)?.get())
        alice.diskError = full
        alice.receipt(sent.id, .delivered, on: link)
        #expect(alice.core.outgoingMessages.first?.recipients.first?.status == .delivered, "it is told all the same")
        alice.diskError = full
        alice.advance(EarshotLimits.keepPause)
        alice.advance(EarshotLimits.keepPause - .milliseconds(1))
        #expect(alice.statusesOnDisk[sent.id] == nil)
        alice.advance(.milliseconds(1))
        #expect(alice.statusesOnDisk[sent.id]?.map(\.status) == [.delivered])
        alice.advance(.seconds(60))
        #expect(alice.statusesOnDisk[sent.id]?.count == 1 && alice.core.keeping.unsettledCount == 0)
    }

    /// The retry writes the present state, not the old one.
    @Test func whatWasReadMeanwhileIsNotUndone() throws {
        var (alice, link, _) = try self.bench()
        let sent = try #require(try alice.send(to: self.bob, queue: true)?.get())
        alice.diskError = EarshotError(.noSpace, "full")
        alice.receipt(sent.id, .delivered, on: link)
        alice.receipt(sent.id, .read, on: link)
        alice.handle(.stop)
        #expect(alice.statusesOnDisk[sent.id]?.last?.status == .read, "written before the end")
        #expect(alice.core.keeping.unsettledCount == 0)
    }

    @Test func whatIsBeingReadIsNotUndone() throws {
        var (alice, link, _) = try self.bench()
        let sent = try #require(try alice.send(to: self.bob, queue: true)?.get())
        alice.diskError = EarshotError(.noSpace, "full")
        alice.receipt(sent.id, .delivered, on: link)
        alice.isDiskHeld = true
        alice.receipt(sent.id, .read, on: link)
        alice.advance(EarshotLimits.keepPause)
        alice.releaseDisk()
        #expect(alice.statusesOnDisk[sent.id]?.map(\.status) == [.read])
    }

    /// The peer repeats the receipt until it is acknowledged, which must not happen before the receipt is on disk.
    @Test func whatWasReadIsKnownOnceItIsWritten() throws {
        var (alice, link, session) = try self.bench()
        let sent = try #require(try alice.send(to: self.bob, queue: true)?.get())
        let noted = Frame.messageReceipts([MessageReceipt(id: sent.id, outcome: .noted)])
        alice.receipt(sent.id, .delivered, on: link)
        alice.diskError = EarshotError(.noSpace, "full")
        alice.receipt(sent.id, .read, on: link)
        alice.lose(link)
        let next = try alice.resume(session, with: self.bob)
        alice.receipt(sent.id, .read, on: next)
        #expect(!alice.sent(on: next).contains(noted) && alice.statusesOnDisk[sent.id]?.map(\.status) == [.delivered])
        alice.advance(EarshotLimits.keepPause)
        #expect(alice.sent(on: next).contains(noted) && alice.statusesOnDisk[sent.id]?.map(\.status) == [.delivered, .read])
        #expect(alice.core.keeping.unsettledCount == 0)
    }

    /// The status is the same in memory and on disk.
    @Test func whatIsReadWhileItsTimeIsOverIsUnconfirmed() throws {
        var (alice, link, _) = try self.bench()
        let sent = try #require(try alice.send(to: self.bob, queue: true, timeout: .seconds(1))?.get())
        alice.isDiskHeld = true
        alice.advance(.seconds(1))
        alice.receipt(sent.id, .read, on: link)
        alice.releaseDisk()
        #expect(alice.core.outgoingMessage(sent.id)?.recipients.first?.status == .unconfirmed)
        let last = try #require(alice.statusesOnDisk[sent.id]?.last)
        #expect(last.status == .unconfirmed && last.errorMessage?.contains("too late") == true)
        #expect(alice.sent(on: link).contains(.messageReceipts([MessageReceipt(id: sent.id, outcome: .noted)])))
    }

    /// The new row must not wait for another read receipt.
    @Test func whatIsSentAgainWhileItIsReadIsReadInItsNewRowToo() throws {
        var (alice, link, _) = try self.bench()
        let carol = peerID(2)
        alice.call(.setTrust(.trusted, carol.description, until: nil))
        var draft = MessageDraft(
            to: .peers([self.bob.description, carol.description]), contentType: "a/b", body: ByteBuffer(string: "x"),
            id: MessageID(high: 0, low: 7), queue: true, timeout: .seconds(1))
        draft.fingerprint = [1]
        alice.call(.send([draft], room: [:]))
        let first = try #require(alice.messages(on: link).first)
        alice.receipt(first.id, .delivered, on: link)
        alice.advance(.seconds(1))
        alice.isDiskHeld = true
        alice.receipt(first.id, .read, on: link)
        alice.call(.send([draft], room: [:]))
        alice.releaseDisk()
        #expect(alice.core.outgoingMessage(first.id)?.recipients.map(\.status) == [.read, .queued])
        #expect(alice.statusesOnDisk[first.id]?.map(\.status) == [.read])
    }

    /// A retry must not undo the state of a message that was sent again with its id, and is being written.
    @Test func whatWasSentAgainMeanwhileIsNotUndone() throws {
        var (alice, link, _) = try self.bench()
        let id = MessageID(high: 0, low: 7)
        alice.send("x", to: self.bob, id: id, queue: true, timeout: .seconds(1))
        alice.diskError = EarshotError(.noSpace, "full")
        alice.advance(.seconds(1))
        #expect(alice.core.outgoingMessages.first?.recipients.first?.status == .unconfirmed && alice.core.keeping.unsettledCount == 1)
        alice.send("x", to: self.bob, id: id, queue: true)
        alice.isDiskHeld = true
        alice.receipt(id, .delivered, on: link)
        alice.advance(EarshotLimits.keepPause)
        alice.releaseDisk()
        #expect(alice.statusesOnDisk[id]?.map(\.status) == [.delivered])
    }

    /// After a restart the message must not wait again, because its callers were told twice that it failed.
    @Test func whatCouldNotBeSentAgainDoesNotComeBack() throws {
        var (alice, _, _) = try self.bench()
        let id = MessageID(high: 0, low: 7)
        alice.send("x", to: self.bob, id: id, queue: true, timeout: .seconds(1))
        alice.doesDiskErrorStay = true
        alice.diskError = EarshotError(.noSpace, "full")
        alice.advance(.seconds(1))
        alice.isDiskHeld = true
        alice.send("x", to: self.bob, id: id, queue: true)
        alice.advance(EarshotLimits.keepPause)
        alice.releaseDisk()
        #expect(alice.core.outgoingMessages.isEmpty && alice.outboxOnDisk[id] != nil)
        alice.diskError = nil
        alice.advance(EarshotLimits.keepPause)
        #expect(alice.outboxOnDisk[id] == nil && alice.core.keeping.unsettledCount == 0)
    }

    @Test func whatCouldNotBeKeptIsNotQueued() throws {
        var (alice, link, _) = try self.bench()
        alice.diskError = EarshotError(.noSpace, "full")
        let outcome = alice.send(to: self.bob, queue: true)
        #expect(throws: EarshotError.self) { try outcome?.get() }
        #expect(alice.core.outgoingMessages.isEmpty && alice.core.queueUsage == QueueUsage())
        #expect(alice.messages(on: link).isEmpty)
    }

    /// The disk takes longer than the message's deadline: the message is not sent.
    @Test func aDiskThatTakesTooLong() throws {
        var (alice, link, _) = try self.bench()
        alice.isDiskHeld = true
        alice.send(to: self.bob, queue: true, timeout: .seconds(1))
        alice.advance(.seconds(2))
        let call = alice.lastCall
        alice.releaseDisk()
        #expect(self.status(alice.outcome(of: call)) == .failed || self.status(alice.outcome(of: call)) == .queued)
        #expect(alice.messages(on: link).isEmpty)
        #expect(alice.core.outgoingMessages.first?.recipients.first?.error == .notSent)
    }

    /// A waiting message survives a restart, with its status at each recipient.
    @Test func aQueuedMessageSurvivesTheMachine() throws {
        var (alice, link, session) = try self.bench()
        alice.lose(link)
        let first = try #require(try alice.send("first", to: self.bob, queue: true)?.get())
        let second = try #require(try alice.send("second", to: self.bob, queue: true)?.get())
        var again = alice.restarted()
        let next = try again.prove(self.bob)
        again.frame(.sessionResume(session), on: next)
        #expect(again.messages(on: next).map(\.id) == [first.id, second.id])
        again.receipt(first.id, .delivered, on: next)
        var third = again.restarted()
        let last = try third.prove(self.bob)
        third.frame(.sessionResume(session), on: last)
        #expect(third.messages(on: last).map(\.id) == [second.id])
    }

    @Test func theOutboxOnDiskIsBounded() throws {
        var (alice, link, _) = try self.bench()
        alice.lose(link)
        for number in 0..<EarshotLimits.outboxMessages {
            #expect(self.status(alice.send(to: self.bob, id: MessageID(high: 1, low: UInt64(number)), queue: true)) == .queued)
        }
        let refused = alice.send(to: self.bob, queue: true)
        #expect { try refused?.get() } throws: { ($0 as? EarshotError)?.code == .noSpace }
        #expect(alice.outboxOnDisk.count == EarshotLimits.outboxMessages)
    }

    /// A trusted peer with queued messages, whose invitation timed out, is invited again.
    @Test func queueInvitationInterval() throws {
        var alice = CoreBench()
        alice.call(.setTrust(.trusted, self.bob.description, until: nil))
        alice.send(to: self.bob, queue: true)
        alice.advance(EarshotLimits.queueInvitationInterval + .seconds(1))
        let link = try alice.prove(self.bob)
        let first = try #require(alice.invites(on: link).first)
        alice.frame(.inviteAnswer(InviteAnswer(id: first, decision: .busy)), on: link)
        alice.advance(EarshotLimits.queueInvitationInterval - .seconds(1) - .nanoseconds(1))
        #expect(alice.invites(on: link).isEmpty)
        alice.advance(.nanoseconds(1))
        #expect(alice.invites(on: link).count == 1)
    }

    /// Without queued messages, no deadline is set.
    @Test func withoutAQueueNoTimeIsLookedAt() {
        var alice = CoreBench()
        alice.call(.setTrust(.trusted, self.bob.description, until: nil))
        #expect(alice.core.nextDeadline == nil)
    }

    // MARK: Repeated ids

    @Test func theSameIDIsTheSameMessage() throws {
        var (alice, link, _) = try self.bench()
        let id = MessageID(high: 9, low: 9)
        alice.send("x", to: self.bob, id: id)
        let first = alice.lastCall
        alice.send("x", to: self.bob, id: id)
        let second = alice.lastCall
        #expect(throws: EarshotError.self, "another one") { try alice.send("y", to: self.bob, id: id)?.get() }
        #expect(alice.messages(on: link).count == 1)
        alice.receipt(id, .delivered, on: link)
        #expect(self.status(alice.outcome(of: first)) == .delivered && self.status(alice.outcome(of: second)) == .delivered)
        #expect(self.status(alice.send("x", to: self.bob, id: id)) == .delivered)
    }

    /// The first may be on its way to the disk when it is repeated, and then fail to be written.
    @Test func theSameWhileTheFirstIsOnItsWayToTheDisk() throws {
        var (alice, link, _) = try self.bench()
        let id = MessageID(high: 9, low: 9)
        alice.isDiskHeld = true
        alice.diskError = EarshotError(.noSpace, "full")
        alice.send("x", to: self.bob, id: id, queue: true)
        let first = alice.lastCall
        alice.send("x", to: self.bob, id: id, queue: true)
        let second = alice.lastCall
        alice.releaseDisk()
        #expect(throws: EarshotError.self) { try alice.outcome(of: first)?.get() }
        #expect(self.status(alice.outcome(of: second)) != nil)
        #expect(alice.messages(on: link).map(\.id) == [id] && alice.outboxOnDisk.count == 1)
    }

    /// The message has started again by then, and is being written once more.
    @Test func theSameWhileItBeginsAgain() throws {
        var (alice, _, _) = try self.bench()
        let id = MessageID(high: 9, low: 9)
        alice.isDiskHeld = true
        alice.diskError = EarshotError(.noSpace, "full")
        let calls = (0..<2).map { _ in
            alice.send("x", to: self.bob, id: id, queue: true)
            return alice.lastCall
        }
        alice.workNext()
        #expect(throws: EarshotError.self) { try alice.outcome(of: calls[0])?.get() }
        alice.send("x", to: self.bob, id: id, queue: true)
        let third = alice.lastCall
        alice.workNext()
        #expect(alice.outcome(of: calls[1]) == nil, "nothing of it is on disk")
        alice.diskError = EarshotError(.noSpace, "full")
        alice.releaseDisk()
        #expect(throws: EarshotError.self) { try alice.outcome(of: third)?.get() }
        #expect(self.status(alice.outcome(of: calls[1])) != nil)
        #expect(alice.outboxOnDisk.count == 1)
    }

    // MARK: Unreliable messages

    /// An unreliable message is sent at once if there is room, and not otherwise.
    @Test func anUnreliableMessageWithoutRoomFails() throws {
        var (alice, link, _) = try self.bench()
        let cost = MessageDraft(to: .all, contentType: "a/b", body: ByteBuffer(string: "x")).cost
        #expect(self.status(alice.send(to: self.bob, mode: .unreliable, room: [link: cost])) == .sent)
        #expect(self.status(alice.send(to: self.bob, mode: .unreliable, room: [link: cost - 1])) == .failed)
        #expect(alice.unreliable[link]?.map(\.cost) == [cost])
        let draft = MessageDraft(to: .all, contentType: "a/b", body: ByteBuffer(string: "x"), mode: .unreliable)
        let drafts = Array(repeating: draft, count: 3)
        let outcomes = try #require(alice.call(.send(drafts, room: [link: 2 * cost]))?.sent)
        #expect(outcomes.map { self.status($0) } == [.sent, .sent, .failed])
        alice.lose(link)
        #expect(self.status(alice.send(to: self.bob, mode: .unreliable, room: [:])) == .failed)
    }

    // MARK: Refusals

    /// Awaited messages must not overtake queued ones, and are not delayed by them.
    @Test func aFullInboxHoldsQueuedMessagesUp() throws {
        var (alice, link, _) = try self.bench()
        let queued = try #require(try alice.send("queued", to: self.bob, queue: true)?.get().id)
        alice.send("awaited", to: self.bob)
        let call = alice.lastCall
        #expect(alice.messages(on: link).count == 2)
        alice.receipt(queued, .inboxFull, on: link)
        alice.receipt(MessageID(high: 0, low: 0), .inboxFull, on: link)
        alice.advance(EarshotLimits.refusedDelays[0] - .nanoseconds(1))
        #expect(alice.messages(on: link).isEmpty)
        // The awaited message is settled by its receipt.
        let awaited = try #require(alice.core.outgoingMessages.first { !$0.isQueued }?.id)
        alice.receipt(awaited, .inboxFull, on: link)
        #expect(self.status(alice.outcome(of: call)) == .failed)
        alice.advance(.nanoseconds(1))
        #expect(alice.messages(on: link).map(\.mode) == [.resumed])
    }

    /// A peer that only an authority vouches for is forgotten with its connection. Messages for it fail, and no longer take room.
    @Test func aPeerThatIsForgotten() throws {
        var alice = CoreBench()
        let link = LinkID(number: 77)
        let facts = try LinkFacts.of(self.bob, vouchedUntil: alice.now.wall + .seconds(3600))
        alice.handle(.link(link, .proven(facts, isOtherDead: false)))
        alice.send(to: self.bob)
        let call = alice.lastCall
        let queued = try #require(try alice.send(to: self.bob, queue: true)?.get().id)
        #expect(alice.outcome(of: call) == nil && alice.core.queueUsage != QueueUsage())
        alice.lose(link)
        #expect(throws: EarshotError.self) { try alice.peer(self.bob) }
        #expect(self.status(alice.outcome(of: call)) == .failed)
        #expect(alice.core.outgoingMessage(queued)?.recipients.first?.status == .failed)
        #expect(alice.core.queueUsage == QueueUsage())
    }

    /// A failed message that is to be retried, and cannot be, remains unchanged.
    @Test func tryingAgainIsRefused() throws {
        var (alice, link, _) = try self.bench()
        let id = MessageID(high: 5, low: 5)
        _ = alice.send(to: self.bob, id: id, queue: true)
        alice.receipt(id, .refused, on: link)
        while alice.core.outgoingMessage(id)?.recipients.first?.status.isFinal == false { alice.advance(.seconds(3600)) }
        let before = alice.core.outgoingMessage(id)
        #expect(before != nil)
        while try alice.send(to: self.bob, queue: true, timeout: .seconds(80_000))?.get() != nil {
            guard alice.core.queueUsage.count < EarshotLimits.outboxMessages else { break }
        }
        #expect { try alice.send(to: self.bob, id: id, queue: true)?.get() } throws: { ($0 as? EarshotError)?.code == .noSpace }
        #expect(alice.core.outgoingMessage(id)?.recipients == before?.recipients)
        #expect(alice.outboxOnDisk[id] != nil)
    }

    /// The end of the session ends all messages, and each call is answered.
    @Test func theEndOfTheSession() throws {
        var (alice, link, session) = try self.bench()
        alice.send(to: self.bob)
        let call = alice.lastCall
        let queued = try #require(try alice.send(to: self.bob, queue: true)?.get().id)
        alice.frame(.sessionEnd(session), on: link)
        #expect(self.status(alice.outcome(of: call)) == .failed)
        #expect(alice.core.outgoingMessage(queued)?.recipients.first?.error == .notConnected)
    }

    @Test func aMachineThatStopsAnswersEveryCall() throws {
        var (alice, _, _) = try self.bench()
        alice.send(to: self.bob)
        let call = alice.lastCall
        alice.handle(.stop)
        alice.handle(.stopped)
        #expect(self.status(alice.outcome(of: call)) == .failed)
        let late = alice.send(to: self.bob)
        #expect { try late?.get() } throws: { ($0 as? EarshotError)?.code == .unavailable }
    }
}
