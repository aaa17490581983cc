import Foundation
import Synchronization
import Testing

@testable import EarshotDiscovery

/// Serial: the threads of one process answer together.
@Suite(.serialized, .timeLimit(.minutes(1))) struct AvahiThreadTests {
    @Test func aLoopThatComesRoundAnswersAndOneInACallDoesNot() async throws {
        let gate = DispatchSemaphore(value: 0)
        let (inCall, entered) = AsyncStream<Void>.makeStream()
        let isToCall = Mutex(false)
        let thread = Task {
            await AvahiThread.run { loop in
                while !loop.isStopped {
                    if isToCall.withLock({ $0 }) {
                        isToCall.withLock { $0 = false }
                        entered.yield()
                        gate.wait()
                    }
                    guard loop.wait(atMost: .seconds(3600)) else { return "the poll loop failed" }
                }
                return nil
            }
        }
        // Asks until the loop is there to answer, which only then sets what it is told.
        await withCheckedContinuation { answer in AvahiThread.answer { answer.resume() } }
        isToCall.withLock { $0 = true }
        let isAnswered = Mutex(false)
        var calls = inCall.makeAsyncIterator()
        let waker = Task {
            while !Task.isCancelled {
                AvahiThread.answer {}
                try? await Task.sleep(for: .milliseconds(5))
            }
        }
        await calls.next()
        waker.cancel()
        AvahiThread.answer { isAnswered.withLock { $0 = true } }
        #expect(!isAnswered.withLock { $0 })
        gate.signal()
        await withCheckedContinuation { answer in AvahiThread.answer { answer.resume() } }
        #expect(isAnswered.withLock { $0 })
        thread.cancel()
        #expect(await thread.value == nil)
        // Where there is no thread nothing can be stuck.
        await withCheckedContinuation { answer in AvahiThread.answer { answer.resume() } }
    }
}
