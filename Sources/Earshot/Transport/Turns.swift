import EarshotWire
import NIOCore
import Synchronization

/// The frames of a connection that the node is handling: a few at a time, so that connections take turns, and no more than its peer's
/// account has room for.
///
/// The connection's handler asks on its event loop before it passes frames on. The node reports when it has handled them.
package final class Turns: Sendable {
    private struct State {
        var ahead = 0
        var isMember = false
        /// The handler's call after a turn is over.
        var resume: (@Sendable () -> Void)?

        var hasOne: Bool { self.ahead < EarshotLimits.turnsAhead }
    }

    package let account: PeerAccount
    private let state = Mutex(State())

    package init(account: PeerAccount) { self.account = account }

    /// Whether the peer is in a session with this node, as of its last turn. A stranger's turns are smaller.
    var isMember: Bool { self.state.withLock { $0.isMember } }

    /// The amount of work in a turn.
    var size: Int { self.isMember ? EarshotLimits.turnWork : EarshotLimits.strangersTurnWork }

    /// Whether frames may be passed on now.
    var mayBegin: Bool {
        let (hasOne, isMember) = self.state.withLock { ($0.hasOne, $0.isMember) }
        return hasOne && self.account.hasRoom(isMember: isMember)
    }

    /// Calls `resume` once, when it is worth asking again. Returns `false` if that is now.
    func wait(_ resume: @escaping @Sendable () -> Void) -> Bool {
        let (waits, isMember) = self.state.withLock { state in
            if !state.hasOne { state.resume = resume }
            return (!state.hasOne, state.isMember)
        }
        return waits || self.account.waitForRoom(isMember: isMember, resume)
    }

    /// Records that frames of this weight are passed on.
    func begin(weight: Int) {
        self.account.charge(weight)
        self.state.withLock { $0.ahead += 1 }
    }

    /// Records that the node has handled the frames. It still holds any weight that it has not released.
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
    /// The approximate amount of work that the frame causes for the node, in units of a few microseconds. It determines the size of turns.
    var work: Int {
        switch self {
        case .message(let message): 1 + message.body.readableBytes / 4096
        case .messageReceipts(let receipts): 1 + receipts.count / 8
        case .group(let group): group.work
        case .resource(let resource): Self.work(ofContent: resource.content)
        case .stream(let stream): Self.work(ofContent: stream.content)
        case .hello, .proof, .refusal, .ping, .pong, .goodbye, .invite, .inviteAnswer, .inviteWithdraw, .sessionResume, .sessionEnd,
            .dataTicket, .dataUnavailable, .dataAttach, .verification:
            Self.usualWork
        }
    }

    private static let usualWork = 16

    private static func work(ofContent content: ByteBuffer?) -> Int {
        content.map { 2 + $0.readableBytes / 16384 } ?? Self.usualWork
    }
}
