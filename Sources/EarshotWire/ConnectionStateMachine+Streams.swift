import NIOCore

extension ConnectionStateMachine {
    /// The order of the frames of streams on one connection, in both directions.
    ///
    /// The course of a stream is: open; accept (a window up to a limit, raised as the receiver's reader takes the bytes); data, never past
    /// the limit; end; done, once the reader has taken everything. The receiver may refuse it instead of accepting, and until done either
    /// side may abort it. Data that was in flight when this side aborted is dropped, but held to the same window.
    ///
    /// After acceptance the bytes may move to a data connection and back: ``StreamWindow`` tracks where they are.
    struct StreamOrder: Sendable {
        /// The most open streams from one peer; further ones are refused as `busy`.
        static let incomingLimit = 64
        /// The number of ended streams of each direction that are remembered, for frames in flight.
        static let remembered = 256

        private enum Incoming: Sendable {
            case opened
            case receiving(StreamWindow)
            /// All bytes have arrived; this side must send `done` or abort.
            case received(StreamWindow)
            /// Ended on this side, which the peer may not know yet. If data may be in flight, its window.
            case ended(StreamWindow?)
            /// Ended on both sides.
            case over
        }

        private enum Outgoing: Sendable {
            case opened
            case sending(StreamWindow)
            /// The end was sent; the peer must send `done` or abort.
            case sent(StreamWindow)
        }

        /// Whether both hellos announce that streams may move to data connections.
        private let reroutesStreams: Bool
        private var incoming: [StreamID: Incoming] = [:]
        private var endedIncoming: [StreamID] = []
        private var outgoing: [StreamID: Outgoing] = [:]
        /// This side's aborted streams: an answer to them may be in flight.
        private var endedOutgoing = RecentIDs<StreamID>(capacity: remembered)
        /// This side's latest streams, whatever their state: their ids are used.
        private var made = RecentIDs<StreamID>(capacity: remembered)

        /// The open streams of both directions by session, oldest first.
        private var sessions = SessionMembers<StreamID>()

        private(set) var openIncoming = 0
        var openOutgoing: Int { self.outgoing.count }

        init(reroutesStreams: Bool) { self.reroutesStreams = reroutesStreams }

        mutating func received(_ frame: StreamFrame) -> ReceivedAction {
            switch frame {
            case .open(let open): self.received(open)
            case .accept(let accept): self.received(accept)
            case .refuse(let refuse): self.received(refuse: refuse.id)
            case .data(let data): self.received(dataOf: data.id, count: UInt64(data.data.readableBytes))
            case .end(let end): self.received(end)
            case .done(let id): self.received(done: id)
            case .abort(let abort): self.received(abort: abort.id)
            case .reroute where !self.reroutesStreams, .rerouted where !self.reroutesStreams:
                .violation(.outOfOrder(frame.type, why: "the two hellos do not both say that streams may move"))
            case .reroute(let reroute): self.received(reroute)
            case .rerouted(let rerouted): self.received(rerouted: rerouted)
            }
        }

        mutating func sent(_ frame: StreamFrame) -> SentAction {
            switch frame {
            case .open(let open): self.sent(open)
            case .accept(let accept): self.sent(accept)
            case .refuse(let refuse): self.sent(refuse: refuse.id)
            case .data(let data): self.sent(dataOf: data.id, count: UInt64(data.data.readableBytes))
            case .end(let end): self.sent(end)
            case .done(let id): self.sent(done: id)
            case .abort(let abort): self.sent(abort: abort.id)
            case .reroute(let reroute): self.reroutesStreams ? self.sent(reroute) : .drop
            case .rerouted(let rerouted): self.reroutesStreams ? self.sent(rerouted: rerouted) : .drop
            }
        }

        /// Ends the open streams of a session that is over, as if each side had aborted them. Frames in flight count as late.
        mutating func end(_ session: SessionID) {
            for id in self.sessions.members(of: session) { _ = self.sent(abort: id) }
        }

        // MARK: The peer's streams

        private mutating func received(_ open: StreamOpen) -> ReceivedAction {
            guard self.incoming[open.id] == nil, self.outgoing[open.id] == nil, !self.endedOutgoing.contains(open.id),
                !self.made.contains(open.id)
            else { return .violation(.outOfOrder(.streamOpen, why: "the stream has been opened before")) }
            guard self.openIncoming < Self.incomingLimit else {
                self.remember(open.id, as: .ended(nil))
                let refusal = Refusal(code: .busy, explanation: "\(Self.incomingLimit) streams are open already")
                return .reply(.stream(.refuse(StreamRefuse(id: open.id, refusal: refusal))))
            }
            self.incoming[open.id] = .opened
            self.openIncoming += 1
            self.sessions.insert(open.id, of: open.session)
            return .deliver
        }

        private mutating func received(dataOf id: StreamID, count: UInt64) -> ReceivedAction {
            let beyond = ReceivedAction.violation(.outOfOrder(.streamData, why: "it goes beyond what was accepted"))
            switch self.incoming[id] {
            case .receiving(let window):
                guard let moved = window.moved(by: count) else { return beyond }
                self.incoming[id] = .receiving(moved)
                return .deliver
            case .ended(.some(let window)):
                guard let moved = window.moved(by: count) else { return beyond }
                self.incoming[id] = .ended(moved)
                return .ignore
            case .opened, .received, .ended(nil), .over, nil:
                return .violation(.outOfOrder(.streamData, why: "the stream takes no data now"))
            }
        }

        private mutating func received(_ end: StreamEnd) -> ReceivedAction {
            let wrong = ReceivedAction.violation(.outOfOrder(.streamEnd, why: "the stream is not where it could end so"))
            switch self.incoming[end.id] {
            case .receiving(let window):
                switch window.end(of: end.size) {
                case .ends:
                    self.incoming[end.id] = .received(window)
                    return .deliver
                case .late(let window):
                    self.incoming[end.id] = .receiving(window)
                    return .ignore
                case .wrong: return wrong
                }
            case .ended(.some(let window)):
                switch window.end(of: end.size) {
                case .ends: self.incoming[end.id] = .ended(nil)
                case .late(let window): self.incoming[end.id] = .ended(window)
                case .wrong: return wrong
                }
                return .ignore
            case .opened, .received, .ended(nil), .over, nil: return wrong
            }
        }

        /// Handles a request of the peer: the sender of a stream wants a data connection for it, or the receiver of one of this side's
        /// wants the bytes here again.
        private mutating func received(_ reroute: StreamReroute) -> ReceivedAction {
            let wrong = ReceivedAction.violation(.outOfOrder(.streamReroute, why: "the stream is not where it could go another way"))
            switch self.incoming[reroute.id] {
            case .receiving(let window):
                guard let asked = window.asked(at: reroute.offset) else { return wrong }
                self.incoming[reroute.id] = .receiving(asked)
                return .deliver
            case .ended(.some(let window)):
                guard let asked = window.asked(at: reroute.offset) else { return wrong }
                self.incoming[reroute.id] = .ended(asked)
                return .ignore
            case .opened, .received, .ended(nil), .over: return wrong
            case nil: break
            }
            switch self.outgoing[reroute.id] {
            case .sending(let window):
                guard let back = window.calledBack(to: reroute.offset, hasEnded: false) else { return wrong }
                self.outgoing[reroute.id] = .sending(back)
            case .sent(let window):
                guard let back = window.calledBack(to: reroute.offset, hasEnded: true) else { return wrong }
                self.outgoing[reroute.id] = .sending(back)
            case .opened: return wrong
            case nil: return self.endedOutgoing.mayHaveHeld(reroute.id) ? .ignore : wrong
            }
            return .deliver
        }

        private mutating func received(rerouted: StreamReroute) -> ReceivedAction {
            let wrong = ReceivedAction.violation(.outOfOrder(.streamRerouted, why: "nobody has asked for that"))
            switch self.incoming[rerouted.id] {
            case .receiving(let window):
                guard let switched = window.switched(at: rerouted.offset) else { return wrong }
                self.incoming[rerouted.id] = .receiving(switched)
                return .deliver
            case .ended(.some(let window)):
                guard let switched = window.switched(at: rerouted.offset) else { return wrong }
                self.incoming[rerouted.id] = .ended(switched)
                return .ignore
            case .opened, .received, .ended(nil), .over, nil: return wrong
            }
        }

        /// Records a request of this side: a data connection for its own stream, or a peer's stream on the control connection again.
        private mutating func sent(_ reroute: StreamReroute) -> SentAction {
            switch self.outgoing[reroute.id] {
            case .sending(let window):
                guard let asked = window.asked(at: reroute.offset) else { return .drop }
                self.outgoing[reroute.id] = .sending(asked)
                return .send
            case .opened, .sent: return .drop
            case nil: break
            }
            switch self.incoming[reroute.id] {
            case .receiving(let window):
                guard let back = window.calledBack(to: reroute.offset, hasEnded: false) else { return .drop }
                self.incoming[reroute.id] = .receiving(back)
            case .received(let window):
                guard let back = window.calledBack(to: reroute.offset, hasEnded: true) else { return .drop }
                self.incoming[reroute.id] = .receiving(back)
            case .opened, .ended, .over, nil: return .drop
            }
            return .send
        }

        private mutating func sent(rerouted: StreamReroute) -> SentAction {
            guard case .sending(let window) = self.outgoing[rerouted.id], let switched = window.switched(at: rerouted.offset) else {
                return .drop
            }
            self.outgoing[rerouted.id] = .sending(switched)
            return .send
        }

        private mutating func received(abort id: StreamID) -> ReceivedAction {
            switch self.incoming[id] {
            case .opened, .receiving, .received:
                self.end(id, as: .over)
                return .deliver
            case .ended:
                self.incoming[id] = .over
                return .ignore
            case .over: return .violation(.outOfOrder(.streamAbort, why: "the stream is over"))
            case nil: return self.receivedEndOfOutgoing(id, by: .streamAbort)
            }
        }

        private mutating func sent(_ accept: StreamAccept) -> SentAction {
            switch self.incoming[accept.id] {
            case .opened:
                self.incoming[accept.id] = .receiving(StreamWindow(first: accept.limit))
                return .send
            case .receiving(let window):
                guard let raised = window.raised(to: accept.limit) else { return .drop }
                self.incoming[accept.id] = .receiving(raised)
                return .send
            case .received, .ended, .over, nil: return .drop
            }
        }

        private mutating func sent(refuse id: StreamID) -> SentAction {
            guard case .opened? = self.incoming[id] else { return .drop }
            self.end(id, as: .ended(nil))
            return .send
        }

        private mutating func sent(done id: StreamID) -> SentAction {
            guard case .received? = self.incoming[id] else { return .drop }
            self.end(id, as: .ended(nil))
            return .send
        }

        private mutating func end(_ id: StreamID, as ended: Incoming) {
            self.openIncoming -= 1
            self.sessions.remove(id)
            self.remember(id, as: ended)
        }

        private mutating func remember(_ id: StreamID, as ended: Incoming) {
            if self.endedIncoming.count == Self.remembered {
                self.incoming[self.endedIncoming.removeFirst()] = nil
            }
            self.endedIncoming.append(id)
            self.incoming[id] = ended
        }

        // MARK: This side's streams

        private mutating func sent(_ open: StreamOpen) -> SentAction {
            guard self.outgoing[open.id] == nil, self.incoming[open.id] == nil, !self.made.contains(open.id) else { return .drop }
            self.made.insert(open.id)
            self.outgoing[open.id] = .opened
            self.sessions.insert(open.id, of: open.session)
            return .send
        }

        private mutating func received(_ accept: StreamAccept) -> ReceivedAction {
            let lower = ReceivedAction.violation(.outOfOrder(.streamAccept, why: "its limit is below the one before"))
            switch self.outgoing[accept.id] {
            case .opened: self.outgoing[accept.id] = .sending(StreamWindow(first: accept.limit))
            case .sending(let window):
                guard let raised = window.raised(to: accept.limit) else { return lower }
                self.outgoing[accept.id] = .sending(raised)
            case .sent(let window):
                guard let raised = window.raised(to: accept.limit) else { return lower }
                self.outgoing[accept.id] = .sent(raised)
            case nil:
                return self.endedOutgoing.mayHaveHeld(accept.id)
                    ? .ignore : .violation(.outOfOrder(.streamAccept, why: "it accepts no stream"))
            }
            return .deliver
        }

        private mutating func received(refuse id: StreamID) -> ReceivedAction {
            switch self.outgoing[id] {
            case .sending, .sent: .violation(.outOfOrder(.streamRefuse, why: "the stream was accepted before"))
            case .opened, nil: self.receivedEndOfOutgoing(id, by: .streamRefuse)
            }
        }

        private mutating func received(done id: StreamID) -> ReceivedAction {
            switch self.outgoing[id] {
            case .opened, .sending: .violation(.outOfOrder(.streamDone, why: "the stream has not ended"))
            case .sent, nil: self.receivedEndOfOutgoing(id, by: .streamDone)
            }
        }

        private mutating func receivedEndOfOutgoing(_ id: StreamID, by type: FrameType) -> ReceivedAction {
            if self.endOutgoing(id) { return .deliver }
            return self.endedOutgoing.remove(id) ? .ignore : .violation(.outOfOrder(type, why: "there is no such stream"))
        }

        private mutating func sent(dataOf id: StreamID, count: UInt64) -> SentAction {
            guard case .sending(let window) = self.outgoing[id], let moved = window.moved(by: count) else { return .drop }
            self.outgoing[id] = .sending(moved)
            return .send
        }

        private mutating func sent(_ end: StreamEnd) -> SentAction {
            guard case .sending(let window) = self.outgoing[end.id], window.end(of: end.size) == .ends else { return .drop }
            self.outgoing[end.id] = .sent(window)
            return .send
        }

        /// Aborts a stream of either direction.
        private mutating func sent(abort id: StreamID) -> SentAction {
            if self.endOutgoing(id) {
                self.endedOutgoing.insert(id)
                return .send
            }
            switch self.incoming[id] {
            case .opened, .received: self.end(id, as: .ended(nil))
            case .receiving(let window): self.end(id, as: .ended(window))
            case .ended, .over, nil: return .drop
            }
            return .send
        }

        /// Ends an outgoing stream; `false` if it is not open.
        private mutating func endOutgoing(_ id: StreamID) -> Bool {
            guard self.outgoing.removeValue(forKey: id) != nil else { return false }
            self.sessions.remove(id)
            return true
        }
    }
}
