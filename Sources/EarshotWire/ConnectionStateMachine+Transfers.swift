import NIOCore

extension ConnectionStateMachine {
    /// The order of the frames of resource transfers on one connection, in both directions.
    ///
    /// The course of a transfer is: offer; accept (a window from an offset to a limit, raised as the receiver writes); chunks, contiguous
    /// from the first accepted offset and never past the limit; end, once every declared byte was sent; done. Before done, the receiver may
    /// refuse it and either side may cancel it. Chunks that were in flight when this side refused or cancelled are dropped, but held to the
    /// same window.
    ///
    /// A transfer that an earlier connection left unfinished is offered again under its id. A receiver that holds its beginning says so
    /// (have), the sender names the offset from which it continues (from), and the accept is for that offset. A receiver that has published
    /// all of it answers the offer with done.
    ///
    /// An accept whose offset is before the size and equals its limit requests the bytes from there over a data connection, which this
    /// state machine does not see. The receiver then reports its progress by another accept: one of the same kind starts again from its
    /// offset, one with a limit above its offset continues with chunks, and one for the size says that it has everything.
    struct TransferOrder: Sendable {
        /// The most open transfers from one peer; further ones are refused as `busy`.
        static let incomingLimit = 64
        /// The number of ended transfers from the peer that are remembered, for frames in flight.
        static let remembered = 256

        /// The range of bytes that may come next.
        private struct Window: Sendable {
            var next: UInt64
            var limit: UInt64
        }

        private enum Incoming: Sendable {
            case offered(size: UInt64)
            /// This side has said that it holds the beginning up to this offset. The peer must name the offset from which it continues.
            case comparing(UInt64, size: UInt64)
            /// The peer continues from this offset; this side must accept.
            case compared(UInt64, size: UInt64)
            /// `acknowledged` is the offset of the latest accept.
            case receiving(Window, acknowledged: UInt64, size: UInt64)
            /// The bytes from this offset on come over a data connection.
            case elsewhere(from: UInt64, size: UInt64)
            /// All bytes have arrived; this side must send `done` or refuse.
            case received
            /// Ended on this side, which the peer may not know yet. If chunks may be in flight, their window.
            case ended(Window?, size: UInt64)
            /// Ended like `ended`, while the peer's offset to continue from may be in flight.
            case endedComparing(UInt64, size: UInt64)
            /// Ended on both sides.
            case over
        }

        private enum Outgoing: Sendable {
            case offered(size: UInt64)
            /// The peer holds the beginning up to this offset. This side must name the offset from which it continues.
            case asked(UInt64, size: UInt64)
            /// This side continues from this offset; the peer must accept.
            case resuming(UInt64, size: UInt64)
            /// `acknowledged` is the offset of the latest accept.
            case sending(Window, acknowledged: UInt64, size: UInt64)
            /// The bytes from this offset on go over a data connection.
            case elsewhere(from: UInt64, size: UInt64)
            /// All bytes were sent; the peer must send `done` or refuse.
            case sent(acknowledged: UInt64, size: UInt64)

            var size: UInt64 {
                switch self {
                case .offered(let size), .asked(_, let size), .resuming(_, let size), .sending(_, _, let size), .elsewhere(_, let size),
                    .sent(_, let size):
                    size
                }
            }
        }

        /// Whether both hellos announce offers of files with attributes.
        private let takesAttributes: Bool
        private var incoming: [ResourceID: Incoming] = [:]
        private var endedIncoming: [ResourceID] = []
        private var outgoing: [ResourceID: Outgoing] = [:]
        /// This side's cancelled transfers: an answer to them may be in flight.
        private var endedOutgoing = RecentIDs<ResourceID>(capacity: remembered)
        /// This side's latest transfers, whatever their state: their ids are used.
        private var made = RecentIDs<ResourceID>(capacity: remembered)

        /// The open transfers of both directions by session, oldest first.
        private var sessions = SessionMembers<ResourceID>()

        private(set) var openIncoming = 0
        var openOutgoing: Int { self.outgoing.count }

        init(takesAttributes: Bool) { self.takesAttributes = takesAttributes }

        mutating func received(_ frame: ResourceFrame) -> ReceivedAction {
            switch frame {
            case .offer(let offer): self.received(offer)
            case .accept(let accept): self.received(accept)
            case .refuse(let refuse): self.received(refuse: refuse.id)
            case .chunk(let chunk): self.received(chunkOf: chunk.id, offset: chunk.offset, count: UInt64(chunk.data.readableBytes))
            case .end(let end): self.received(endOf: end.id)
            case .done(let id): self.received(done: id)
            case .cancel(let cancel): self.received(cancel: cancel.id)
            case .have(let have): self.received(have)
            case .from(let from): self.received(from)
            }
        }

        mutating func sent(_ frame: ResourceFrame) -> SentAction {
            switch frame {
            case .offer(let offer): self.sent(offer)
            case .accept(let accept): self.sent(accept)
            case .refuse(let refuse): self.sent(refuse: refuse.id)
            case .chunk(let chunk): self.sent(chunkOf: chunk.id, offset: chunk.offset, count: UInt64(chunk.data.readableBytes))
            case .end(let end): self.sent(endOf: end.id)
            case .done(let id): self.sent(done: id)
            case .cancel(let cancel): self.sent(cancel: cancel.id)
            case .have(let have): self.sent(have)
            case .from(let from): self.sent(from)
            }
        }

        /// Ends the open transfers of a session that is over, as if each side had cancelled them. Frames in flight count as late.
        mutating func end(_ session: SessionID) {
            for id in self.sessions.members(of: session) { _ = self.sent(cancel: id) }
        }

        // MARK: The peer's transfers

        private mutating func received(_ offer: ResourceOffer) -> ReceivedAction {
            guard offer.attributes == nil || self.takesAttributes else {
                return .violation(.outOfOrder(.resourceOffer, why: "the two hellos do not both say that files have attributes"))
            }
            guard self.incoming[offer.id] == nil, self.outgoing[offer.id] == nil, !self.endedOutgoing.contains(offer.id),
                !self.made.contains(offer.id)
            else { return .violation(.outOfOrder(.resourceOffer, why: "the transfer has been offered before")) }
            guard self.openIncoming < Self.incomingLimit else {
                self.remember(offer.id, as: .ended(nil, size: offer.size))
                let refusal = Refusal(code: .busy, explanation: "\(Self.incomingLimit) transfers are open already")
                return .reply(.resource(.refuse(ResourceRefuse(id: offer.id, refusal: refusal))))
            }
            self.incoming[offer.id] = .offered(size: offer.size)
            self.openIncoming += 1
            self.sessions.insert(offer.id, of: offer.session)
            return .deliver
        }

        private mutating func received(chunkOf id: ResourceID, offset: UInt64, count: UInt64) -> ReceivedAction {
            let window: Window
            switch self.incoming[id] {
            case .receiving(let current, _, _), .ended(.some(let current), _): window = current
            case .offered, .comparing, .compared, .elsewhere, .received, .ended(nil, _), .endedComparing, .over, nil:
                return .violation(.outOfOrder(.resourceChunk, why: "the transfer takes no data now"))
            }
            let (end, overflow) = offset.addingReportingOverflow(count)
            guard offset == window.next, !overflow, end <= window.limit else {
                return .violation(.outOfOrder(.resourceChunk, why: "it is not the next within the accepted range"))
            }
            let moved = Window(next: end, limit: window.limit)
            switch self.incoming[id] {
            case .receiving(_, let acknowledged, let size):
                self.incoming[id] = .receiving(moved, acknowledged: acknowledged, size: size)
                return .deliver
            case .ended(_, let size):
                self.incoming[id] = .ended(moved, size: size)
                return .ignore
            case .offered, .comparing, .compared, .elsewhere, .received, .endedComparing, .over, nil: return .ignore
            }
        }

        private mutating func received(endOf id: ResourceID) -> ReceivedAction {
            switch self.incoming[id] {
            case .receiving(let window, _, let size) where window.next == size:
                self.incoming[id] = .received
                return .deliver
            case .ended(.some(let window), let size) where window.next == size:
                self.incoming[id] = .ended(nil, size: size)
                return .ignore
            case .offered, .comparing, .compared, .receiving, .elsewhere, .received, .ended, .endedComparing, .over, nil:
                return .violation(.outOfOrder(.resourceEnd, why: "not every declared byte has been sent"))
            }
        }

        private mutating func received(cancel id: ResourceID) -> ReceivedAction {
            switch self.incoming[id] {
            case .offered, .comparing, .compared, .receiving, .elsewhere, .received:
                self.end(id, as: .over)
                return .deliver
            case .ended, .endedComparing:
                self.incoming[id] = .over
                return .ignore
            case .over: return .violation(.outOfOrder(.resourceCancel, why: "the transfer is over"))
            case nil: return self.receivedEndOfOutgoing(id, by: .resourceCancel)
            }
        }

        private mutating func received(_ from: ResourceFrom) -> ReceivedAction {
            switch self.incoming[from.id] {
            case .comparing(let held, let size) where from.offset == held || from.offset == 0:
                self.incoming[from.id] = .compared(from.offset, size: size)
                return .deliver
            case .endedComparing(let held, let size) where from.offset == held || from.offset == 0:
                self.incoming[from.id] = .ended(nil, size: size)
                return .ignore
            case .comparing, .endedComparing:
                return .violation(.outOfOrder(.resourceFrom, why: "it is neither where this side asked about nor the start"))
            case .offered, .compared, .receiving, .elsewhere, .received, .ended, .over, nil:
                return .violation(.outOfOrder(.resourceFrom, why: "this side has not asked"))
            }
        }

        private mutating func sent(_ have: ResourceHave) -> SentAction {
            guard case .offered(let size) = self.incoming[have.id], 0 < have.offset, have.offset <= size else { return .drop }
            self.incoming[have.id] = .comparing(have.offset, size: size)
            return .send
        }

        private mutating func sent(_ accept: ResourceAccept) -> SentAction {
            guard accept.offset <= accept.limit else { return .drop }
            switch self.incoming[accept.id] {
            case .compared(let offset, let size) where accept.offset == offset && accept.limit <= size,
                .elsewhere(let offset, let size) where accept.offset >= offset && accept.limit <= size:
                self.incoming[accept.id] = Self.incoming(as: accept, size: size)
                return .send
            // An accept from the middle is allowed only after the sender has confirmed that its source begins with the content here.
            case .offered(let size) where accept.offset == 0 && accept.limit <= size:
                self.incoming[accept.id] = Self.incoming(as: accept, size: size)
                return .send
            case .receiving(var window, let acknowledged, let size)
            where (window.limit...size).contains(accept.limit) && (acknowledged...window.next).contains(accept.offset):
                window.limit = accept.limit
                self.incoming[accept.id] = .receiving(window, acknowledged: accept.offset, size: size)
                return .send
            case .offered, .comparing, .compared, .receiving, .elsewhere, .received, .ended, .endedComparing, .over, nil: return .drop
            }
        }

        /// Returns the state after an accept that is the first, or the first after a data connection.
        private static func incoming(as accept: ResourceAccept, size: UInt64) -> Incoming {
            accept.isForDataConnection(size: size)
                ? .elsewhere(from: accept.offset, size: size)
                : .receiving(Window(next: accept.offset, limit: accept.limit), acknowledged: accept.offset, size: size)
        }

        private mutating func sent(refuse id: ResourceID) -> SentAction {
            switch self.incoming[id] {
            case .offered(let size), .compared(_, let size), .elsewhere(_, let size): self.end(id, as: .ended(nil, size: size))
            case .comparing(let held, let size): self.end(id, as: .endedComparing(held, size: size))
            case .receiving(let window, _, let size): self.end(id, as: .ended(window, size: size))
            case .received: self.end(id, as: .ended(nil, size: 0))
            case .ended, .endedComparing, .over, nil: return .drop
            }
            return .send
        }

        private mutating func sent(done id: ResourceID) -> SentAction {
            switch self.incoming[id] {
            // The transfer was offered again although it is here: its `done` was lost with an earlier connection.
            case .offered, .received:
                self.end(id, as: .ended(nil, size: 0))
                return .send
            case .comparing, .compared, .receiving, .elsewhere, .ended, .endedComparing, .over, nil: return .drop
            }
        }

        private mutating func end(_ id: ResourceID, as ended: Incoming) {
            self.openIncoming -= 1
            self.sessions.remove(id)
            self.remember(id, as: ended)
        }

        private mutating func remember(_ id: ResourceID, as ended: Incoming) {
            if self.endedIncoming.count == Self.remembered {
                self.incoming[self.endedIncoming.removeFirst()] = nil
            }
            self.endedIncoming.append(id)
            self.incoming[id] = ended
        }

        // MARK: This side's transfers

        private mutating func sent(_ offer: ResourceOffer) -> SentAction {
            guard offer.attributes == nil || self.takesAttributes else { return .drop }
            guard self.outgoing[offer.id] == nil, self.incoming[offer.id] == nil, !self.made.contains(offer.id) else { return .drop }
            self.made.insert(offer.id)
            self.outgoing[offer.id] = .offered(size: offer.size)
            self.sessions.insert(offer.id, of: offer.session)
            return .send
        }

        private mutating func received(_ have: ResourceHave) -> ReceivedAction {
            switch self.outgoing[have.id] {
            case .offered(let size) where 0 < have.offset && have.offset <= size:
                self.outgoing[have.id] = .asked(have.offset, size: size)
                return .deliver
            case .offered: return .violation(.outOfOrder(.resourceHave, why: "it is more than what was offered"))
            case .asked, .resuming, .sending, .elsewhere, .sent: return .violation(.outOfOrder(.resourceHave, why: "it answers no offer"))
            case nil:
                return self.endedOutgoing.mayHaveHeld(have.id)
                    ? .ignore : .violation(.outOfOrder(.resourceHave, why: "it answers no offer"))
            }
        }

        private mutating func sent(_ from: ResourceFrom) -> SentAction {
            guard case .asked(let held, let size) = self.outgoing[from.id], from.offset == held || from.offset == 0 else { return .drop }
            self.outgoing[from.id] = .resuming(from.offset, size: size)
            return .send
        }

        private mutating func received(_ accept: ResourceAccept) -> ReceivedAction {
            guard let transfer = self.outgoing[accept.id] else {
                return self.endedOutgoing.mayHaveHeld(accept.id)
                    ? .ignore : .violation(.outOfOrder(.resourceAccept, why: "it accepts no offer"))
            }
            let outside = ReceivedAction.violation(.outOfOrder(.resourceAccept, why: "its range is not within what was offered and sent"))
            guard accept.offset <= accept.limit, accept.limit <= transfer.size else { return outside }
            switch transfer {
            case .asked: return .violation(.outOfOrder(.resourceAccept, why: "this side has not said from where it goes on"))
            case .resuming(let offset, let size):
                guard accept.offset == offset else { return outside }
                self.outgoing[accept.id] = Self.outgoing(as: accept, size: size)
            case .elsewhere(let offset, let size):
                guard accept.offset >= offset else { return outside }
                self.outgoing[accept.id] = Self.outgoing(as: accept, size: size)
            case .offered(let size):
                guard accept.offset == 0 else { return outside }
                self.outgoing[accept.id] = Self.outgoing(as: accept, size: size)
            case .sending(let window, let acknowledged, let size):
                guard accept.limit >= window.limit, (acknowledged...window.next).contains(accept.offset) else { return outside }
                self.outgoing[accept.id] = .sending(
                    Window(next: window.next, limit: accept.limit), acknowledged: accept.offset, size: size)
            case .sent(let acknowledged, let size):
                guard accept.limit == size, accept.offset >= acknowledged else { return outside }
                self.outgoing[accept.id] = .sent(acknowledged: accept.offset, size: size)
            }
            return .deliver
        }

        /// Returns the state like ``incoming(as:size:)``.
        private static func outgoing(as accept: ResourceAccept, size: UInt64) -> Outgoing {
            accept.isForDataConnection(size: size)
                ? .elsewhere(from: accept.offset, size: size)
                : .sending(Window(next: accept.offset, limit: accept.limit), acknowledged: accept.offset, size: size)
        }

        private mutating func received(refuse id: ResourceID) -> ReceivedAction {
            self.receivedEndOfOutgoing(id, by: .resourceRefuse)
        }

        private mutating func received(done id: ResourceID) -> ReceivedAction {
            switch self.outgoing[id] {
            case .asked, .resuming, .sending, .elsewhere: .violation(.outOfOrder(.resourceDone, why: "the transfer has not ended"))
            case .offered, .sent, nil: self.receivedEndOfOutgoing(id, by: .resourceDone)
            }
        }

        private mutating func receivedEndOfOutgoing(_ id: ResourceID, by type: FrameType) -> ReceivedAction {
            if self.endOutgoing(id) { return .deliver }
            return self.endedOutgoing.remove(id) ? .ignore : .violation(.outOfOrder(type, why: "there is no such transfer"))
        }

        private mutating func sent(chunkOf id: ResourceID, offset: UInt64, count: UInt64) -> SentAction {
            guard case .sending(let window, let acknowledged, let size) = self.outgoing[id] else { return .drop }
            let (end, overflow) = offset.addingReportingOverflow(count)
            guard offset == window.next, !overflow, end <= window.limit else { return .drop }
            self.outgoing[id] = .sending(Window(next: end, limit: window.limit), acknowledged: acknowledged, size: size)
            return .send
        }

        private mutating func sent(endOf id: ResourceID) -> SentAction {
            guard case .sending(let window, let acknowledged, let size) = self.outgoing[id], window.next == size else { return .drop }
            self.outgoing[id] = .sent(acknowledged: acknowledged, size: size)
            return .send
        }

        /// Cancels a transfer of either direction.
        private mutating func sent(cancel id: ResourceID) -> SentAction {
            if self.endOutgoing(id) {
                self.endedOutgoing.insert(id)
                return .send
            }
            return self.sent(refuse: id)
        }

        /// Ends an outgoing transfer; `false` if it is not open.
        private mutating func endOutgoing(_ id: ResourceID) -> Bool {
            guard self.outgoing.removeValue(forKey: id) != nil else { return false }
            self.sessions.remove(id)
            return true
        }
    }
}
