import NIOCore
import NIOEmbedded
import Testing

@testable import Earshot

@Suite(.timeLimit(.minutes(1))) struct ChangesTests {
    @Test func whatHasChangedBeforeIsNotWaitedFor() async {
        let changes = Changes()
        let seen = changes.count
        changes.tell()
        #expect(await changes.wait(after: seen))
        #expect(changes.count == seen + 1)
    }

    @Test func everyoneWhoWaitsIsWoken() async {
        let changes = Changes()
        await withTaskGroup(of: Bool.self) { group in
            let seen = changes.count
            for _ in 0..<10 { group.addTask { await changes.wait(after: seen) } }
            changes.tell()
            for await isTold in group { #expect(isTold) }
        }
    }

    @Test func aCancelledTaskWaitsNoMore() async {
        let changes = Changes()
        let seen = changes.count
        let waiting = Task { await changes.wait(after: seen) }
        waiting.cancel()
        #expect(await waiting.value == false)
        // The other waiting tasks return.
        async let other = changes.wait(after: seen)
        changes.tell()
        #expect(await other)
    }

    /// Two readers of one stream share its bytes, and both learn of its end. An `AsyncStream` crashed the process in this case.
    @Test func twoReadersOfOneFlow() async throws {
        let flow = IncomingFlow(window: 1000, Timers(on: NIOAsyncTestingEventLoop())) { _ in }
        let read = { @Sendable () async throws -> Int in
            var count = 0
            while let piece = try await flow.next() { count += piece.readableBytes }
            return count
        }
        async let one = read()
        async let other = read()
        for _ in 0..<100 { flow.append(ByteBuffer(string: "x")) }
        flow.finish(at: 100)
        #expect(try await one + other == 100)
    }
}
