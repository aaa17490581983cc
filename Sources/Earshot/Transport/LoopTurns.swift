import DequeModule
import EarshotWire
package import NIOCore
import NIOPosix
import Synchronization

#if canImport(Glibc)
    import Glibc
#endif

/// Work that takes turns on an event loop: in the order in which it came, and after ``EarshotLimits/nodeTurn`` of it everything else that
/// the loop serves, its sockets above all, comes before the rest.
///
/// A loop runs what is executed on it until nothing is left, and looks at its sockets only then: work that begets work would keep it from
/// them for as long as there is any. What is left of a turn therefore waits for a byte on a socket of our own, which the loop finds there
/// when it has looked at all of them.
package final class LoopTurns: Sendable {
    private struct State {
        var first: Deque<@Sendable () -> Void> = []
        var waiting: Deque<@Sendable () -> Void> = []
        /// Whether the loop comes back to what waits.
        var isScheduled = false
        /// Whether it is the turn of what waits behind what comes first.
        var isOthersTurn = false
        var turn = NodeTurn()
    }

    private let loop: any EventLoop
    private let state = Mutex(State())
    /// How much the turns of its connections have of their work.
    let pace = TurnPace()
    /// Where the byte is written; the loop has the other end.
    private let bell: CInt

    private init(on loop: any EventLoop, bell: CInt) {
        self.loop = loop
        self.bell = bell
    }

    deinit { close(self.bell) }

    /// - Throws: `unavailable` where there are no descriptors left.
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

    /// Whether it is this loop's turns.
    func areOn(_ loop: any EventLoop) -> Bool { self.loop === loop }

    /// Has the work done on the loop when its turn comes, never at once; from any thread. The node's inputs come first, bounded by the turns of
    /// the connections that they come from: else each of them would wait for a turn of every connection that sends as fast as it can.
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

    /// What is to be done next, and whether it is what comes first.
    private func next() -> (work: @Sendable () -> Void, isFirst: Bool)? {
        self.state.withLock { state in
            // What comes first may come without an end: after a turn that it has filled one of the others goes before it. Only then: one of the
            // others may fill a turn by itself, and what comes first would never have another.
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
        // Refused only where the loop is about to end, and then there is nobody to let in.
        guard send(self.bell, [1], 1, CInt(MSG_NOSIGNAL) | CInt(MSG_DONTWAIT)) != 1 else { return }
        self.loop.execute { self.run() }
    }

    /// Hears the byte.
    private final class Hearer: ChannelInboundHandler, Sendable {
        typealias InboundIn = ByteBuffer

        private let turns: LoopTurns

        init(_ turns: LoopTurns) { self.turns = turns }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) { self.turns.run() }
    }
}
