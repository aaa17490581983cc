import Foundation
import NIOCore
import NIOEmbedded
import NIOPosix
import Synchronization
import Testing

@testable import Earshot

@Suite(.timeLimit(.minutes(1))) struct TimersTests {
    /// The time of a test's timers is that of its loop, and only the test moves it.
    @Test func aTestsTimePassesAsItIsMoved() async {
        let loop = NIOAsyncTestingEventLoop()
        let timers = Timers(on: loop)
        let start = timers.now
        #expect(start.nanoseconds == 0)
        await loop.advanceTime(by: .seconds(5))
        #expect(timers.now - start == .seconds(5))
    }

    /// A test may move the time past a timer that a node is about to set. The timer then fires without another move.
    @Test func whatIsLateComesAtOnce() async {
        let loop = NIOAsyncTestingEventLoop()
        let timers = Timers(on: loop)
        let deadline = timers.now + .seconds(3)
        await loop.advanceTime(by: .seconds(5))
        await withCheckedContinuation { continuation in
            timers.schedule(at: deadline) { continuation.resume() }
        }
        #expect(timers.now == deadline + .seconds(2))
    }

    /// While the time is moved, a node handles one timer and sets the next one. One step fires both.
    @Test func theNextOneComesInTheSameStep() async {
        let loop = NIOAsyncTestingEventLoop()
        let timers = Timers(on: loop)
        let start = timers.now
        await withCheckedContinuation { continuation in
            timers.schedule(at: start + .seconds(1)) {
                let isSet = DispatchSemaphore(value: 0)
                Thread.detachNewThread {
                    timers.schedule(at: start + .seconds(3)) { continuation.resume() }
                    isSet.signal()
                }
                isSet.wait()
            }
            Task { await loop.advanceTime(by: .seconds(5)) }
        }
    }

    @Test func suspendPassesByTheClockAlone() async {
        let loop = NIOAsyncTestingEventLoop()
        let timers = Timers(on: loop) { .seconds(60) }
        let hasCome = Atomic(false)
        timers.schedule(at: timers.now + .seconds(1)) { hasCome.store(true, ordering: .relaxed) }
        #expect(timers.now == MonotonicInstant(nanoseconds: 60_000_000_000))
        await loop.run()
        let early = hasCome.load(ordering: .relaxed)
        #expect(!early)
        await loop.advanceTime(by: .seconds(1))
        let then = hasCome.load(ordering: .relaxed)
        #expect(then)
    }

    /// A daemon's time is the system's time since boot, including time in suspend (proc_uptime(5), in hundredths of a second).
    @Test func aDaemonsTimeIsTheSystems() throws {
        let timers = Timers.system(of: MultiThreadedEventLoopGroup.singleton)
        func sinceBoot() throws -> MonotonicInstant {
            let seconds = try #require(Double(try String(contentsOfFile: "/proc/uptime", encoding: .utf8).prefix { $0 != " " }))
            return MonotonicInstant(nanoseconds: Int64((seconds * 100).rounded()) * 10_000_000)
        }
        let before = try sinceBoot()
        let now = timers.now
        #expect(try before <= now && now - .milliseconds(10) <= sinceBoot())
    }
}
