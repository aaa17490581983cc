import EarshotWire
import Foundation
import Testing

@testable import Earshot

@Suite(.timeLimit(.minutes(1))) struct EventLogTests {
    private func log(_ count: Int, cost: Int = 1) -> EventLog {
        let log = EventLog(epoch: "now")
        for _ in 0..<count { self.append(to: log, cost: cost) }
        return log
    }

    private func append(to log: EventLog, cost: Int = 1) {
        log.append(.discoveryChanged(DiscoveryStatus(backend: .none, state: .off)), at: Date(), cost: cost)
    }

    private func all(_ subscription: EventLog.Subscription) async -> [NodeEvent] {
        var events: [NodeEvent] = []
        for await event in subscription { events.append(event) }
        return events
    }

    private func gap(_ event: NodeEvent?) -> ClosedRange<UInt64>? {
        if case .gap(let range)? = event?.kind { range } else { nil }
    }

    @Test func sequencesRiseByOneAndEndWithTheLog() async {
        let log = self.log(100)
        log.finish()
        #expect(await self.all(log.subscribe(since: 0)).map(\.sequence) == Array(1...100))
        #expect(await self.all(log.subscribe(since: 97)).map(\.sequence) == [98, 99, 100])
        #expect(await self.all(log.subscribe()).isEmpty)
        // A number that this run has not reached belongs to another run, so the reader may have missed all events of this one.
        #expect(await self.all(log.subscribe(since: 101)).compactMap(self.gap) == [1...100])
        #expect(await self.all(log.subscribe(since: 100)).isEmpty)
    }

    @Test func eventsBeforeTheBacklogAreAGap() async {
        let log = self.log(EarshotLimits.eventBacklog)
        log.finish()
        #expect(await self.all(log.subscribe(since: 0)).map(\.sequence) == Array(1...UInt64(EarshotLimits.eventBacklog)))
        let more = self.log(EarshotLimits.eventBacklog + 1)
        more.finish()
        let events = await self.all(more.subscribe(since: 0))
        #expect(self.gap(events.first) == 1...1)
        #expect(events.map(\.sequence) == Array(1...UInt64(EarshotLimits.eventBacklog + 1)))
    }

    @Test func eventBacklogBytes() async {
        let half = EarshotLimits.eventBacklogBytes / 2
        let log = self.log(2, cost: half)
        log.finish()
        #expect(await self.all(log.subscribe(since: 0)).map(\.sequence) == [1, 2])
        let more = self.log(2, cost: half)
        self.append(to: more, cost: 1)
        more.finish()
        let events = await self.all(more.subscribe(since: 0))
        #expect(self.gap(events.first) == 1...1)
        #expect(events.map(\.sequence) == [1, 2, 3])
        // The newest event stays, whatever its size.
        let huge = self.log(1, cost: 10 * half)
        huge.finish()
        #expect(await self.all(huge.subscribe(since: 0)).map(\.sequence) == [1])
    }

    @Test func anotherEpochIsAGapOverEverything() async {
        let log = self.log(5)
        log.finish()
        let events = await self.all(log.subscribe(since: 3, epoch: "before"))
        #expect(events.count == 1)
        #expect(self.gap(events.first) == 1...5)
        #expect(await self.all(log.subscribe(since: 3, epoch: "now")).map(\.sequence) == [4, 5])
    }

    /// A reader from another run learns of the restart even if there are no events since.
    @Test func anotherEpochIsAGapBeforeTheFirstEvent() async {
        let log = self.log(0)
        log.finish()
        let events = await self.all(log.subscribe(since: 3, epoch: "before"))
        #expect(events.map(\.sequence) == [0] && self.gap(events.first) == 0...0)
        #expect(await self.all(log.subscribe(since: 0, epoch: "now")).isEmpty)
    }

    @Test func aWaitingReaderIsWokenCancelledAndFinished() async {
        let log = self.log(0)
        var subscription = log.subscribe(since: 0)
        async let first = subscription.next()
        self.append(to: log)
        #expect(await first?.sequence == 1)
        let waiting = Task { await self.all(log.subscribe()) }
        waiting.cancel()
        #expect(await waiting.value.isEmpty)
        let last = Task { await self.all(log.subscribe(since: 1)) }
        self.append(to: log)
        log.finish()
        #expect(await last.value.map(\.sequence) == [2])
    }

    @Test func anEndedSubscriptionWaitsForNothing() async {
        let log = self.log(1)
        let (ended, other) = (log.subscribe(), log.subscribe())
        let waiting = Task { await self.all(ended) }
        let reading = Task { await self.all(other) }
        ended.end()
        #expect(await waiting.value.isEmpty)
        // Also before it starts waiting. Other readers are not affected.
        #expect(await self.all(ended).isEmpty)
        self.append(to: log)
        log.finish()
        #expect(await reading.value.map(\.sequence) == [2])
        #expect(await self.all(ended).isEmpty)
    }

    /// A reader hears of nothing but events and calls of `wakeReaders`, although the end of another reader wakes it.
    @Test func anEndOfAnotherReaderIsNoStep() async {
        let log = self.log(0)
        for round in 1...100 as ClosedRange<UInt64> {
            var reader = log.subscribe()
            let other = log.subscribe()
            async let step = reader.step()
            await Task.yield()
            other.end()
            await Task.yield()
            self.append(to: log)
            guard case .event(let event) = await step else {
                Issue.record("a reader was woken for nothing")
                continue
            }
            #expect(event.sequence == round)
        }
    }

    @Test func manyReadersSeeTheSame() async {
        let log = self.log(0)
        let read = await withTaskGroup(of: [UInt64].self) { group in
            for _ in 0..<8 { group.addTask { await self.all(log.subscribe(since: 0)).map(\.sequence) } }
            for _ in 0..<1000 { self.append(to: log) }
            log.finish()
            return await group.reduce(into: [[UInt64]]()) { $0.append($1) }
        }
        #expect(read == Array(repeating: Array(1...1000), count: 8))
    }
}
