public import EarshotWire
public import NIOCore
import OrderedCollections

/// Sending messages: the core decides what goes where, and answers once it is known what became of each.
extension Node {
    /// Sends a message to one or more peers.
    ///
    /// A reliable one waits until each peer has it on disk, or the deadline (10 s by default) has passed. With `queue` it returns as soon as
    /// the message is in the outbox on disk, where it survives restarts and waits for absent peers until `outboxAge`, or the
    /// timeout where that is sooner. An unreliable one goes at once to the peers that are connected, and nowhere else.
    /// `id` may be given for safe retries: the same message sent again under it is delivered once. A trusted peer without a session
    /// is invited first; for a queued message, whenever it is seen. A caller whose task is cancelled waits no more: what became of the message
    /// is not known then, and until its deadline it may still reach its recipients.
    /// - Throws: `cancelled`; before anything is sent: `invalid-parameter`, `too-large`, `unknown-peer`, `ambiguous-peer`, `forbidden` (blocked),
    ///   `not-connected` (no session), `conflict` (the id is another message's), `no-space` and `storage` (the outbox is full or cannot be
    ///   written). What happens later stands in the recipients.
    public func send(
        to recipients: Message.Recipients, contentType: String, body: ByteBuffer, mode: Message.Mode = .reliable, id: MessageID? = nil,
        queue: Bool = false, timeout: Duration? = nil
    ) async throws(EarshotError) -> SentMessage {
        let draft = MessageDraft(
            to: recipients, contentType: contentType, body: body, mode: mode, id: id, queue: queue, timeout: timeout)
        let batch = self.submit([draft])
        let outcomes = await withTaskCancellationHandler {
            await batch.outcomes()
        } onCancel: {
            batch.settle([.failure(Self.callerCancelled)])
        }
        guard let outcome = outcomes.first else { throw Self.stopping }
        return try outcome.get()
    }

    /// A reliable message to peers by their names; see ``send(to:contentType:body:mode:id:queue:timeout:)``.
    public func send(
        to names: [String], contentType: String, body: ByteBuffer, id: MessageID? = nil, timeout: Duration? = nil
    ) async throws(EarshotError) -> SentMessage {
        try await self.send(to: .peers(names), contentType: contentType, body: body, id: id, timeout: timeout)
    }

    /// Sends many messages, in their order, as ``send(to:contentType:body:mode:id:queue:timeout:)`` sends one: at once and without waiting.
    ///
    /// What goes to one peer goes out together, and one wait for the batch tells what became of each.
    public func submit(_ drafts: [MessageDraft]) -> MessageBatch {
        let batch = MessageBatch()
        // The bodies are not held for as long as the call waits.
        let count = drafts.count
        self.call(.send(self.fingerprinted(drafts), room: self.unreliableRoom(for: drafts))) { answer in
            batch.settle(answer.sent ?? Array(repeating: .failure(Self.stopping), count: count))
        }
        return batch
    }

    /// Sends one message as ``submit(_:)`` does, for a caller that does not wait in a task; `then` is called on the node's event loop once it is
    /// known what became of it. For a caller on that loop the node begins at once.
    public nonisolated func submit(_ draft: MessageDraft, then: @escaping @Sendable (MessageBatch.Outcome) -> Void) {
        let work = { @Sendable in
            self.assumeIsolated { node in
                let drafts = node.fingerprinted([draft])
                node.call(.send(drafts, room: node.unreliableRoom(for: drafts))) { answer in
                    then(answer.sent?.first ?? .failure(Self.stopping))
                }
            }
        }
        if self.eventLoop.inEventLoop { work() } else { self.eventLoop.execute(work) }
    }

    /// The drafts with the fingerprints of those that need one.
    private func fingerprinted(_ drafts: [MessageDraft]) -> [MessageDraft] {
        guard drafts.contains(where: { $0.queue || $0.id != nil }) else { return drafts }
        let isAnyQueued = drafts.contains { $0.queue }
        return drafts.map { draft in
            // One that comes again under its id may be that of a queued one right before it.
            guard self.inCore({ $0.needsFingerprint(draft) }) || isAnyQueued && draft.id != nil else { return draft }
            var draft = draft
            draft.fingerprint = XXH3.fingerprint(draft)
            return draft
        }
    }

    /// How much the control connections that the drafts would go out on take of what is sent at once or not at all.
    private func unreliableRoom(for drafts: [MessageDraft]) -> OrderedDictionary<LinkID, Int> {
        var room: OrderedDictionary<LinkID, Int> = [:]
        var last: Message.Recipients?
        for draft in drafts where draft.mode == .unreliable && draft.recipients != last {
            last = draft.recipients
            for connection in self.inCore({ $0.reached(by: draft.recipients) }).compactMap(self.connection(to:)) {
                room[connection.id] = connection.unreliableRoom
            }
        }
        return room
    }

    /// The peers that may be sent to by name: in a session, or trusted, and then invited.
    func recipients(_ names: [String]) throws(EarshotError) -> [PeerID] {
        let peers = try self.core.recipients(names)
        for id in peers { self.handle(.need(id, .session)) }
        return peers
    }
}

extension Answer {
    fileprivate var sent: [MessageOutcome]? { if case .sent(let outcomes) = self { outcomes } else { nil } }
}
