import NIOCore
import OrderedCollections
import Testing

@testable import EarshotCore
@testable import EarshotWire

/// Messages that name the message to which they reply.
@Suite struct ReplyTests {
    private let bob = PeerID(subjectPublicKeyInfo: [2])
    private let question = MessageID(high: 1, low: 2)

    private func draft(_ mode: Message.Mode = .reliable, id: MessageID? = nil, queue: Bool = false, replies: Bool = true) -> MessageDraft {
        var draft = MessageDraft(
            to: .peers([self.bob.description]), contentType: "text/plain", body: ByteBuffer(string: "x"), mode: mode, id: id, queue: queue,
            inReplyTo: replies ? self.question : nil)
        draft.fingerprint = [1]
        return draft
    }

    private func live(_ bench: inout CoreBench, on link: LinkID) throws -> [MessageID?] {
        try bench.effects.flatMap { effect -> [MessageID?] in
            guard case .sendUnreliable(link, let messages) = effect else { return [] }
            var decoder = FrameDecoder()
            decoder.phase = .proven
            decoder.feed(messages.encoded)
            var names = messages.frames.map(\.inReplyTo)
            while let frame = try decoder.next() { if case .message(let message) = frame { names.append(message.inReplyTo) } }
            return names
        }
    }

    @Test(arguments: [true, false]) func aPeerThatDoesNotKnowRepliesGetsTheMessage(knows: Bool) throws {
        var (alice, link, _) = try CoreBench.inSession(with: self.bob, extensions: knows ? [.replies] : [])
        alice.call(.send([self.draft(), self.draft(replies: false)], room: [:]))
        alice.call(.send([self.draft(queue: true)], room: [:]))
        let named = knows ? self.question : nil
        #expect(alice.messages(on: link).map(\.inReplyTo) == [named, nil, named])
        alice.call(.send([self.draft(.unreliable), self.draft(.unreliable, replies: false)], room: [link: 1 << 20]))
        #expect(try Set(self.live(&alice, on: link)) == [named, nil])
    }

    @Test func aQueuedReplyOutlivesARestart() throws {
        var (alice, link, session) = try CoreBench.inSession(with: self.bob)
        alice.lose(link)
        alice.call(.send([self.draft(queue: true)], room: [:]))
        #expect(alice.core.outbox.map(\.inReplyTo) == [self.question])
        var again = alice.restarted()
        let later = try again.resume(session, with: self.bob, extensions: [.replies])
        #expect(again.messages(on: later).map(\.inReplyTo) == [self.question])
    }

    /// A message of the same bytes that replies to something else is another message.
    @Test func anIDBelongsToOneReply() throws {
        var (alice, _, _) = try CoreBench.inSession(with: self.bob, extensions: [.replies])
        let id = MessageID(high: 5, low: 5)
        alice.call(.send([self.draft(id: id, queue: true)], room: [:]))
        alice.call(.send([self.draft(id: id, queue: true), self.draft(id: id, queue: true, replies: false)], room: [:]))
        let outcomes = alice.answers[alice.lastCall]?.sent
        #expect(try outcomes?.first?.get().id == id)
        #expect(throws: EarshotError.self) { try outcomes?.last?.get() }
    }

    @Test func aReplyIsDeliveredAndPublishedWithItsQuestion() throws {
        var (alice, link, session) = try CoreBench.inSession(with: self.bob, extensions: [.replies])
        let frames = [MessageFrame.Mode.reliable, .unreliable].enumerated().map { number, mode in
            MessageFrame(
                session: session, id: MessageID(high: 9, low: UInt64(number)), mode: mode, sequence: 1, sentAtMilliseconds: 0,
                inReplyTo: self.question, contentType: "a/b", body: ByteBuffer())
        }
        alice.handle(.link(link, .messages(frames)))
        #expect(alice.received.map(\.inReplyTo) == [self.question])
        let live = alice.events.flatMap { event -> [Message] in if case .liveMessages(let messages) = event { messages } else { [] } }
        #expect(live.map(\.inReplyTo) == [self.question])
    }
}
