import NIOCore

/// The order of frames between two proven peers on one control connection.
///
/// The owner passes it every received frame before acting on it, and every frame before writing it, and performs the returned action. The
/// machine covers one connection only: sessions, stored messages and resources outlive it and belong to the node, which starts a new
/// machine with the next connection. It knows which transfers and streams of this connection end with a session.
///
/// Frames cross in flight, so a frame can arrive for a transfer, a stream or an invitation that this side has just ended. The machine
/// ignores such a frame once, and only if crossing can explain it. Any other frame out of order is the peer's fault and closes the
/// connection.
package struct ConnectionStateMachine: Sendable {
    package enum ReceivedAction: Sendable, Hashable {
        /// In order: process the frame.
        case deliver
        /// Explained by crossing frames: nothing to do.
        case ignore
        /// Write this frame. It is accounted for already and needs no `sent`.
        case reply(Frame)
        /// The peer violated the protocol: write the error's refusal and close.
        case violation(WireError)
    }

    package enum SentAction: Sendable, Hashable {
        /// Write the frame.
        case send
        /// Discard the frame: its subject is over on this connection, or never began.
        case drop
    }

    package enum State: Sendable {
        case open
        /// This side has sent a goodbye: it still receives, but writes no more.
        case finishing
        case closed

        /// Whether received unreliable messages are processed: they depend on no earlier frames, and change no state.
        package var hearsUnreliable: Bool {
            switch self {
            case .open, .finishing: true
            case .closed: false
            }
        }

        /// Whether unreliable messages may be written now.
        package var saysUnreliable: Bool {
            switch self {
            case .open: true
            case .finishing, .closed: false
            }
        }
    }

    /// The most pings in flight; heartbeats leave one.
    package static let outstandingPings = 8

    /// Read this property directly: a method call would first copy the machine if a class holds it.
    package private(set) var state: State = .open
    private var pings: [UInt64] = []
    private var order = MessageOrder()
    private var invitations: InvitationOrder
    private var groupInvitations = GroupInvitationOrder()
    private var transfers: TransferOrder
    private var streams: StreamOrder
    /// Whether both hellos announce groups.
    private let knowsGroups: Bool
    /// Whether both hellos announce replies.
    private let takesReplies: Bool

    /// Creates a machine for one connection. `reroutesStreams`: whether both hellos carry ``HelloExtension/streamReroute``. `knowsGroups`:
    /// whether both carry ``HelloExtension/groups``. `takesAttributes`: whether both carry ``HelloExtension/fileAttributes``.
    /// `takesReplies`: whether both carry ``HelloExtension/replies``.
    package init(
        localID: PeerID, peerID: PeerID, reroutesStreams: Bool = true, knowsGroups: Bool = true, takesAttributes: Bool = true,
        takesReplies: Bool = true
    ) {
        self.invitations = InvitationOrder(isLower: localID < peerID)
        self.transfers = TransferOrder(takesAttributes: takesAttributes)
        self.streams = StreamOrder(reroutesStreams: reroutesStreams)
        self.knowsGroups = knowsGroups
        self.takesReplies = takesReplies
    }

    /// The number of open transfers of each direction.
    package var openTransfers: (incoming: Int, outgoing: Int) {
        (self.transfers.openIncoming, self.transfers.openOutgoing)
    }

    /// The number of open streams of each direction.
    package var openStreams: (incoming: Int, outgoing: Int) {
        (self.streams.openIncoming, self.streams.openOutgoing)
    }

    /// Returns the action on a received frame.
    package mutating func received(_ frame: Frame) -> ReceivedAction {
        switch self.state {
        case .closed: return .ignore
        case .open, .finishing: break
        }
        let action = self.actionOn(frame)
        switch (action, self.state) {
        case (.violation, _):
            self.state = .closed
            return action
        case (.reply, .finishing): return .ignore
        case (.reply, .open), (.reply, .closed), (.deliver, _), (.ignore, _): return action
        }
    }

    private mutating func actionOn(_ frame: Frame) -> ReceivedAction {
        switch frame {
        case .hello, .proof: return .violation(.outOfOrder(frame.type, why: "the handshake is over"))
        case .dataAttach: return .violation(.outOfOrder(.dataAttach, why: "this is a control connection"))
        case .refusal, .goodbye:
            self.state = .closed
            return .deliver
        case .ping(let value): return .reply(.pong(value))
        case .pong(let value):
            guard value == self.pings.first else { return .violation(.outOfOrder(.pong, why: "it answers no ping")) }
            self.pings.removeFirst()
            return .deliver
        case .invite(let invite): return self.invitations.received(invite)
        case .inviteAnswer(let answer):
            let action = self.invitations.received(answer)
            if case .reply(.sessionEnd(let session)) = action { self.end(session) }
            return action
        case .inviteWithdraw(let withdraw): return self.invitations.received(withdraw)
        // The order of a comparison's steps is checked by ``VerificationStateMachine``, which the users' decisions drive.
        case .sessionResume, .messageReceipts, .dataTicket, .dataUnavailable, .verification: return .deliver
        case .sessionEnd(let session):
            self.end(session)
            return .deliver
        case .group(let group):
            guard self.knowsGroups else { return .violation(.outOfOrder(frame.type, why: "the two hellos do not both know groups")) }
            return self.groupInvitations.received(group)
        case .message(let message): return self.received(message)
        case .resource(let resource): return self.transfers.received(resource)
        case .stream(let stream): return self.streams.received(stream)
        }
    }

    /// Ends a session for either side: its transfers and streams free their places without frames of their own.
    private mutating func end(_ session: SessionID) {
        self.transfers.end(session)
        self.streams.end(session)
    }

    private mutating func received(_ message: MessageFrame) -> ReceivedAction {
        guard message.inReplyTo == nil || self.takesReplies else {
            return .violation(.outOfOrder(.message, why: "the two hellos do not both know replies"))
        }
        switch message.mode {
        case .unreliable: return .deliver
        case .resumed:
            self.order.note(message.sequence, in: message.session)
            return .deliver
        case .reliable:
            if let last = self.order.last(in: message.session), message.sequence <= last {
                return .violation(.outOfOrder(.message, why: "the sequence of reliable messages only rises"))
            }
            self.order.note(message.sequence, in: message.session)
            return .deliver
        }
    }

    /// Returns the action on a frame that is about to be written.
    @discardableResult
    package mutating func sent(_ frame: Frame) -> SentAction {
        switch self.state {
        case .finishing, .closed: return .drop
        case .open: break
        }
        switch frame {
        case .hello, .proof, .dataAttach: return .drop
        case .refusal:
            self.state = .closed
            return .send
        case .goodbye:
            self.state = .finishing
            return .send
        case .ping(let value):
            guard self.pings.count < Self.outstandingPings else { return .drop }
            self.pings.append(value)
            return .send
        // Pongs are replies, which are accounted for when their ping arrives.
        case .pong: return .drop
        case .invite(let invite): return self.invitations.sent(invite)
        case .inviteAnswer(let answer): return self.invitations.sent(answer)
        case .inviteWithdraw(let withdraw): return self.invitations.sent(withdraw)
        case .sessionResume, .messageReceipts, .dataTicket, .dataUnavailable, .verification: return .send
        case .message(let message): return message.inReplyTo == nil || self.takesReplies ? .send : .drop
        case .sessionEnd(let session):
            self.end(session)
            return .send
        case .group(let group): return self.knowsGroups ? self.groupInvitations.sent(group) : .drop
        case .resource(let resource): return self.transfers.sent(resource)
        case .stream(let stream): return self.streams.sent(stream)
        }
    }
}
