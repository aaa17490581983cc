import EarshotWire
import Foundation
import NIOCore
import NIOEmbedded
import Testing

@testable import Earshot
@testable import EarshotCore

/// Data on disk expires by the time that daemons have run, whatever the wall clock shows at a start or later.
@Suite(.timeLimit(.minutes(1))) struct RunningClockTests {
    private static let past = Date(timeIntervalSince1970: 0)
    private static let present = Date(timeIntervalSince1970: 1_785_585_600)
    private static let future = Date(timeIntervalSince1970: 4_000_000_000)

    @Test(arguments: [(past, present), (present, past), (present, future), (future, present)])
    func whatIsQueuedOutlivesAWrongClock(first: Date, second: Date) async throws {
        let (alice, bob) = try await pair(configureAlice: { $0.now = { first } })
        await bob.stop()
        let message = try await alice.node.send(
            to: .peers([bob.node.id.description]), contentType: "text/plain", body: ByteBuffer(string: "x"), id: nil, queue: true)
        await alice.stop()
        let alice2 = try await TestNode("alice", in: alice.state) { $0.now = { second } }
        #expect(try await alice2.node.message(message.id, from: nil).recipients.map(\.status) == [.queued])
        let bob2 = try await TestNode("bob", in: bob.state)
        alice2.sees(bob2)
        try await eventually("it is delivered") {
            try await alice2.node.message(message.id, from: nil).recipients.map(\.status) == [.delivered]
        }
        #expect(try await bob2.inbox() == ["x"])
        await alice2.stop()
        await bob2.stop()
    }

    /// The receiver has pruned the message, and remembers it however its clock is set.
    @Test func aRepeatIsKnownAfterAWrongClock() async throws {
        let loop = NIOAsyncTestingEventLoop()
        let (alice, bob) = try await pair(configureBob: {
            $0.timers = Timers(on: loop)
            $0.inboxAge = .seconds(1)
        })
        let id = MessageID.random()
        _ = try await alice.send("x", to: bob, id: id)
        _ = try await bob.node.markRead(id, from: nil)
        await loop.advanceTime(by: TimeAmount(EarshotLimits.firstPruning))
        try await eventually("it is gone") { try await bob.inbox() == [] }
        await bob.stop()
        await alice.stop()
        let alice2 = try await TestNode("alice", in: alice.state)
        let bob2 = try await TestNode("bob", in: bob.state) {
            $0.timers = Timers(on: loop)
            $0.now = { Self.future }
        }
        await loop.advanceTime(by: TimeAmount(EarshotLimits.firstPruning))
        try await eventually("it has pruned") { await bob2.node.pruning != nil }
        alice2.sees(bob2)
        bob2.sees(alice2)
        #expect(try await alice2.send("x", to: bob2, id: id).recipients.map(\.status) == [.delivered])
        #expect(try await bob2.inbox() == [])
        await alice2.stop()
        await bob2.stop()
        await loop.end()
    }

    /// The clock continues from its last value: exactly after a stop, and from the last noted time after a kill.
    @Test func runningNoteInterval() async throws {
        let loop = NIOAsyncTestingEventLoop()
        let alice = try await TestNode("alice") {
            $0.timers = Timers(on: loop)
            $0.now = { Self.present }
        }
        let begin = WallTime(Self.present)
        #expect(await alice.node.runningTime == begin)
        let first = try #require(await alice.node.pruning).futureResult
        await loop.advanceTime(by: TimeAmount(EarshotLimits.firstPruning))
        try await eventually("the next pruning is scheduled") {
            await alice.node.pruning.map { $0.futureResult !== first } ?? false
        }
        #expect(await alice.node.store.notedRunning == begin.milliseconds, "nothing is written while the interval is not over")
        await loop.advanceTime(by: TimeAmount(EarshotLimits.runningNoteInterval))
        let noted = begin + EarshotLimits.firstPruning + EarshotLimits.runningNoteInterval
        try await eventually("it is noted") { await alice.node.store.notedRunning == noted.milliseconds }
        await loop.advanceTime(by: .seconds(10))
        await alice.stop()
        let again = try await TestNode("alice", in: alice.state) {
            $0.timers = Timers(on: loop)
            $0.now = { Self.future }
        }
        #expect(await again.node.runningTime == noted + .seconds(10))
        await again.stop()
        await loop.end()
    }

    /// The first time is on disk immediately, and the clock never runs backwards.
    @Test func theFirstTimeIsKept() async throws {
        let directory = try StateDirectory()
        do {
            let store = try Store(directory: directory.path)
            #expect(try await store.runningTime(beginningWith: WallTime(Self.past)) == WallTime(Self.past))
        }
        let store = try Store(directory: directory.path)
        #expect(try await store.runningTime(beginningWith: WallTime(Self.present)) == WallTime(Self.past))
        try await store.noteRunningTime(WallTime(Self.present))
        try await store.noteRunningTime(WallTime(Self.past))
        #expect(try await Store(directory: directory.path).runningTime(beginningWith: WallTime(Self.past)) == WallTime(Self.present))
    }
}
