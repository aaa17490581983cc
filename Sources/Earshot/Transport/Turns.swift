import EarshotWire
import NIOCore
import Synchronization

/// What of a connection's frames is with the node: a few at a time, so that connections take turns, and no more than its peer's account has
/// room for.
///
/// The connection's handler asks before it hands frames on, on its event loop; the node says when it has dealt with them.
package final class Turns: Sendable {
    private struct State {
        var ahead = 0
        var isMember = false
        /// The handler waits for a turn to be over.
        var resume: (@Sendable () -> Void)?

        var hasOne: Bool { self.ahead < EarshotLimits.turnsAhead }
    }

    package let account: PeerAccount
    private let state = Mutex(State())

    package init(account: PeerAccount) { self.account = account }

    /// Whether the peer is in a session with us, as far as its last turn showed: what a stranger may have done in one turn is less.
    var isMember: Bool { self.state.withLock { $0.isMember } }

    /// How much work fills a turn.
    var size: Int { self.isMember ? EarshotLimits.turnWork : EarshotLimits.strangersTurnWork }

    /// Whether frames may be handed on now.
    var mayBegin: Bool {
        let (hasOne, isMember) = self.state.withLock { ($0.hasOne, $0.isMember) }
        return hasOne && self.account.hasRoom(isMember: isMember)
    }

    /// Has `resume` called once it is worth asking again; `false` where it is now.
    func wait(_ resume: @escaping @Sendable () -> Void) -> Bool {
        let (waits, isMember) = self.state.withLock { state in
            if !state.hasOne { state.resume = resume }
            return (!state.hasOne, state.isMember)
        }
        return waits || self.account.waitForRoom(isMember: isMember, resume)
    }

    /// Frames of that weight are handed on.
    func begin(weight: Int) {
        self.account.charge(weight)
        self.state.withLock { $0.ahead += 1 }
    }

    /// The node has dealt with what was handed on; what it has not given back it still holds.
    func end(isMember: Bool) {
        let resume = self.state.withLock { state in
            state.ahead -= 1
            state.isMember = isMember
            defer { state.resume = nil }
            return state.resume
        }
        resume?()
    }
}

extension Frame {
    /// About how much work the frame is for the node, in units of a few microseconds: what fills a turn.
    var work: Int {
        switch self {
        case .message(let message): 1 + message.body.readableBytes / 4096
        case .messageReceipts(let receipts): 1 + receipts.count / 8
        case .group(let group): group.work
        case .resourceChunk(let chunk): 2 + chunk.data.readableBytes / 16384
        case .streamData(let data): 2 + data.data.readableBytes / 16384
        case .hello, .proof, .refusal, .ping, .pong, .goodbye, .invite, .inviteAnswer, .inviteWithdraw, .sessionResume, .sessionEnd,
            .resourceOffer, .resourceAccept, .resourceRefuse, .resourceEnd, .resourceDone, .resourceCancel, .resourceHave, .resourceFrom,
            .dataTicket, .dataUnavailable, .dataAttach, .streamOpen, .streamAccept, .streamRefuse, .streamEnd, .streamDone, .streamAbort,
            .streamReroute, .streamRerouted, .verification:
            16
        }
    }
}
