import DequeModule
import EarshotWire
package import NIOCore
import NIOPosix
import Synchronization

#if canImport(Glibc)
    import Glibc
#endif

/// Work that takes turns on an event loop, in the order of arrival. After ``EarshotLimits/nodeTurn`` of work, the loop serves everything
/// else, in particular its sockets, before it continues.
///
/// A loop executes scheduled work until none is left, and only then polls its sockets. Work that schedules more work would keep it from
/// polling. The rest of a turn therefore waits for a byte on a private socket, which the loop finds when it has polled all of them.
package final class LoopTurns: Sendable {
    private struct State {
        var first: Deque<@Sendable () -> Void> = []
        var waiting: Deque<@Sendable () -> Void> = []
        /// Whether the loop will run the waiting work.
        var isScheduled = false
        /// Whether the next turn belongs to `waiting` instead of `first`.
        var isOthersTurn = false
        var turn = NodeTurn()
    }

    private let loop: any EventLoop
    private let state = Mutex(State())
    /// The size of turns of the loop's connections.
    let pace = TurnPace()
    /// The socket to which the byte is written; the loop reads the other end.
    private let bell: CInt

    private init(on loop: any EventLoop, bell: CInt) {
        self.loop = loop
        self.bell = bell
    }

    deinit { close(self.bell) }

    /// Creates the turns of a loop.
    /// - Throws: `unavailable` if there are no descriptors left.
    package static func make(on loop: any EventLoop) async throws(EarshotError) -> LoopTurns {
        var ends: [CInt] = [-1, -1]
        let kind = CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue) | CInt(SOCK_NONBLOCK.rawValue)
        guard socketpair(AF_UNIX, kind, 0, &ends) == 0 else {
            throw EarshotError(.unavailable, "cannot make a pair of sockets: \(String(cString: strerror(errno)))")
        }
        let turns = LoopTurns(on: loop, bell: ends[1])
        do {
            _ = try await NIOPipeBootstrap(group: loop)
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(Hearer(turns)) }
                }
                .takingOwnershipOfDescriptor(input: ends[0]).get()
        } catch {
            close(ends[0])
            throw EarshotError(.unavailable, "cannot watch a socket of our own: \(error)", underlying: error)
        }
        return turns
    }

    /// Whether these are the turns of `loop`.
    func areOn(_ loop: any EventLoop) -> Bool { self.loop === loop }

    /// Schedules work on the loop for its turn, from any thread; it never runs immediately. The node's inputs have priority with `first`.
    /// They are bounded by the turns of the connections from which they come. Without priority, each of them would wait for a turn of
    /// every connection that sends as fast as it can.
    package func take(first: Bool = false, _ work: @escaping @Sendable () -> Void) {
        let isAlone = self.state.withLock { state in
            if first { state.first.append(work) } else { state.waiting.append(work) }
            defer { state.isScheduled = true }
            return !state.isScheduled
        }
        if isAlone { self.loop.execute { self.run() } }
    }

    fileprivate func run() {
        while let (work, isFirst) = self.next() {
            let began = ContinuousClock.now
            work()
            let took = ContinuousClock.now - began
            let isOver = self.state.withLock { state in
                guard state.turn.isOver(after: took) else { return false }
                state.isOthersTurn = isFirst
                return true
            }
            guard isOver else { continue }
            self.letOthersIn()
            return
        }
    }

    /// Removes and returns the next work, and whether it has priority.
    private func next() -> (work: @Sendable () -> Void, isFirst: Bool)? {
        self.state.withLock { state in
            // Work with priority may be endless, so after a turn that it has filled, one piece of other work precedes it. This applies
            // only then: a single piece of other work may fill a turn, and work with priority would otherwise never run.
            if state.isOthersTurn, let work = state.waiting.popFirst() {
                state.isOthersTurn = false
                return (work, false)
            }
            if let work = state.first.popFirst() { return (work, true) }
            if let work = state.waiting.popFirst() { return (work, false) }
            state.isScheduled = false
            return nil
        }
    }

    private func letOthersIn() {
        // The send fails only if the loop is about to end, and then there is nothing to yield to.
        guard send(self.bell, [1], 1, CInt(MSG_NOSIGNAL) | CInt(MSG_DONTWAIT)) != 1 else { return }
        self.loop.execute { self.run() }
    }

    /// Receives the byte.
    private final class Hearer: ChannelInboundHandler, Sendable {
        typealias InboundIn = ByteBuffer

        private let turns: LoopTurns

        init(_ turns: LoopTurns) { self.turns = turns }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) { self.turns.run() }
    }
}
