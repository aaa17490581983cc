public import EarshotWire
public import NIOCore
import OrderedCollections

/// Sending messages. The core decides their routes, and answers when the outcome of each is known.
extension Node {
    /// Sends a message to one or more peers.
    ///
    /// A reliable message waits until each peer has it on disk, or until the deadline (10 s by default). With `queue`, the call returns as
    /// soon as the message is in the outbox on disk. There it survives restarts and waits for absent peers until `outboxAge`, or until the
    /// timeout if that is sooner. An unreliable message goes immediately to the connected peers, and to no others.
    ///
    /// `id` makes retries safe: a message that is sent again under the same id is delivered once. A trusted peer without a session is
    /// invited first; for a queued message, whenever it is seen. If the caller's task is cancelled, the wait ends. The outcome is then
    /// unknown, and the message may still reach its recipients until its deadline.
    ///
    /// `inReplyTo` names the message to which this one replies. A peer of an earlier release gets the message without it.
    /// - Throws: `cancelled`; before anything is sent: `invalid-parameter`, `too-large`, `unknown-peer`, `ambiguous-peer`, `forbidden`
    ///   (blocked), `not-connected` (no session), `conflict` (the id belongs to another message), `no-space` and `storage` (the outbox is
    ///   full or cannot be written). The recipients show later failures.
    @discardableResult
    public func send(
        to recipients: Message.Recipients, contentType: String, body: ByteBuffer, mode: Message.Mode = .reliable, id: MessageID? = nil,
        queue: Bool = false, timeout: Duration? = nil, inReplyTo: MessageID? = nil, pin: String? = nil
    ) async throws(EarshotError) -> SentMessage {
        var draft = MessageDraft(
            to: recipients, contentType: contentType, body: body, mode: mode, id: id, queue: queue, timeout: timeout, inReplyTo: inReplyTo)
        draft.pin = pin
        let batch = self.submit([draft])
        let outcomes = await withTaskCancellationHandler {
            await batch.outcomes()
        } onCancel: {
            batch.settle([.failure(Self.callerCancelled)])
        }
        guard let outcome = outcomes.first else { throw Self.stopping }
        return try outcome.get()
    }

    /// Sends a reliable message to peers; see ``send(to:contentType:body:mode:id:queue:timeout:inReplyTo:)``.
    @discardableResult
    public func send(
        to peers: [any PeerReference], contentType: String, body: ByteBuffer, id: MessageID? = nil, timeout: Duration? = nil,
        inReplyTo: MessageID? = nil
    ) async throws(EarshotError) -> SentMessage {
        try await self.send(
            to: .peers(peers.map(\.description)), contentType: contentType, body: body, id: id, timeout: timeout, inReplyTo: inReplyTo)
    }

    /// Sends many messages in order, each like ``send(to:contentType:body:mode:id:queue:timeout:inReplyTo:)``, and returns without waiting.
    ///
    /// Messages to one peer are sent together. One wait for the batch returns the outcome of each message.
    package func submit(_ drafts: [MessageDraft]) -> MessageBatch {
        let batch = MessageBatch()
        // Read here, so that the closure does not retain the bodies while the call waits.
        let count = drafts.count
        self.call(.send(self.fingerprinted(drafts), room: self.unreliableRoom(for: drafts))) { answer in
            batch.settle(answer.sent ?? Array(repeating: .failure(Self.stopping), count: count))
        }
        return batch
    }

    /// Sends one message like ``submit(_:)``, for a caller that does not wait in a task. `then` runs on the node's event loop when the
    /// outcome is known. If the caller is on that loop, the node starts immediately.
    package nonisolated func submit(_ draft: MessageDraft, then: @escaping @Sendable (MessageBatch.Outcome) -> Void) {
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

    /// Returns the drafts, with fingerprints for those that need one.
    private func fingerprinted(_ drafts: [MessageDraft]) -> [MessageDraft] {
        guard drafts.contains(where: { $0.queue || $0.id != nil }) else { return drafts }
        let isAnyQueued = drafts.contains { $0.queue }
        return drafts.map { draft in
            // A draft with an id may repeat a queued one that precedes it in the same call.
            guard self.inCore({ $0.needsFingerprint(draft) }) || isAnyQueued && draft.id != nil else { return draft }
            var draft = draft
            draft.fingerprint = XXH3.fingerprint(draft)
            return draft
        }
    }

    /// Returns how many bytes of unreliable messages each control connection for the drafts can accept.
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

    /// Resolves names to peers that can be sent to: members of sessions, and trusted peers, which are then invited.
    func recipients(_ names: [String]) throws(EarshotError) -> [PeerID] {
        let peers = try self.core.recipients(names)
        for id in peers { self.handle(.need(id, .session)) }
        return peers
    }
}

extension Answer {
    fileprivate var sent: [MessageOutcome]? { if case .sent(let outcomes) = self { outcomes } else { nil } }
}
