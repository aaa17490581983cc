import NIOCore
import NIOPosix
import Synchronization
import Testing

@testable import Earshot

/// Turns of work on an event loop.
@Suite(.timeLimit(.minutes(1))) struct LoopTurnsTests {
    /// Endless work that schedules more work. It ends when the loop has served a socket.
    @Test func theLoopsSocketsComeInBetween() async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let loop = group.next()
        let turns = try await LoopTurns.make(on: loop)
        let isHeard = Atomic(false)
        let server = try await ServerBootstrap(group: loop)
            .childChannelInitializer { _ in
                isHeard.store(true, ordering: .relaxed)
                return loop.makeSucceededVoidFuture()
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let (ended, end) = AsyncStream<Void>.makeStream()
        @Sendable func work() {
            guard !isHeard.load(ordering: .relaxed) else { return end.finish() }
            turns.take(work)
        }
        turns.take(work)
        let other = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let client = try await ClientBootstrap(group: other).connect(to: try #require(server.localAddress)).get()
        for await _ in ended {}
        try await client.close()
        try await server.close()
        try await other.shutdownGracefully()
        try await group.shutdownGracefully()
    }

    /// Work runs in order, from whichever thread, and never during the call that schedules it.
    @Test func workRunsInOrderAndAfterItsCall() async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let turns = try await LoopTurns.make(on: group.next())
        let done = Mutex<[Int]>([])
        let (ended, end) = AsyncStream<Void>.makeStream()
        turns.take {
            turns.take {
                done.withLock { $0.append(2) }
                end.finish()
            }
            done.withLock { $0.append(1) }
        }
        for await _ in ended {}
        #expect(done.withLock { $0 } == [1, 2])
        try await group.shutdownGracefully()
    }

    /// Work with priority does not wait for a turn of every other piece of work.
    @Test func workWithPriorityRunsFirst() async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let turns = try await LoopTurns.make(on: group.next())
        let done = Mutex<[Int]>([])
        let (ended, end) = AsyncStream<Void>.makeStream()
        turns.take {
            for number in 3...5 { turns.take { done.withLock { $0.append(number) } } }
            turns.take { end.finish() }
            for number in 1...2 { turns.take(first: true) { done.withLock { $0.append(number) } } }
        }
        for await _ in ended {}
        #expect(done.withLock { $0 } == [1, 2, 3, 4, 5])
        try await group.shutdownGracefully()
    }

    /// If each piece of work fills a turn, the two kinds alternate. Neither waits until the other is done.
    @Test func neitherStarvesTheOther() async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let turns = try await LoopTurns.make(on: group.next())
        let done = Mutex<[String]>([])
        let (ended, end) = AsyncStream<Void>.makeStream()
        @Sendable func fillTurn(_ name: String) {
            let began = ContinuousClock.now
            while ContinuousClock.now - began < EarshotLimits.nodeTurn {}
            let count = done.withLock { done in
                done.append(name)
                return done.count
            }
            if count == 8 { end.finish() }
        }
        turns.take {
            for _ in 1...4 {
                turns.take { fillTurn("other") }
                turns.take(first: true) { fillTurn("first") }
            }
        }
        for await _ in ended {}
        #expect(done.withLock { $0 } == ["first", "other", "first", "other", "first", "other", "first", "other"])
        try await group.shutdownGracefully()
    }
}
