import Foundation
import Testing

@testable import EarshotCLI

private struct Letter: HandledItem {
    let id: Int
    var weight = 1
    var arrival: Date { Date(timeIntervalSince1970: Double(self.id)) }
}

/// A queue with its clock, and the daemon's unread letters by sender.
private struct Bench {
    var queue: HandlerQueue<String, Letter>
    var now = ContinuousClock.now
    var unread: [String: [Letter]] = [:]
    /// The fetches so far, such as `a` and `a after 3`.
    var fetches: [String] = []
    var page = 100

    init(jobs: Int = 1, retry: Duration = .seconds(60)) {
        self.queue = HandlerQueue(jobs: jobs, retry: retry)
    }

    mutating func arrive(_ sender: String, _ ids: Int..., weight: Int = 1) {
        self.unread[sender, default: []] += ids.map { Letter(id: $0, weight: weight) }
        self.queue.news(of: sender)
    }

    /// Answers all fetches, and returns the other actions in the form `a1`, `terminate` and `end`.
    mutating func run() -> [String] {
        var actions: [String] = []
        while let action = self.queue.next(at: self.now) {
            switch action {
            case .fetch(let lane, let place):
                self.fetches.append(lane + (place.map { " after \($0)" } ?? ""))
                let rest = self.unread[lane, default: []].filter { $0.id > place.flatMap { Int($0) } ?? 0 }
                let items = Array(rest.prefix(self.page))
                self.queue.fetched(lane, items, next: rest.count > items.count ? items.last.map { "\($0.id)" } : nil)
            case .handle(let lane, let item): actions.append("\(lane)\(item.id)")
            case .terminate: actions.append("terminate")
            case .end: return actions + ["end"]
            }
        }
        return actions
    }

    /// Handles the first letter of a sender, which the daemon then has as read.
    mutating func succeed(_ sender: String) -> [String] {
        self.unread[sender]?.removeFirst()
        self.queue.finished(sender, isHandled: true, at: self.now)
        return self.run()
    }

    mutating func fail(_ sender: String) -> Duration? { self.queue.finished(sender, isHandled: false, at: self.now) }
}

/// The order of handlers, their retries, and the steps of a stop.
@Suite struct HandlerQueueTests {
    @Test func theOldestGoesFirst() {
        var bench = Bench()
        bench.arrive("b", 2, 5)
        bench.arrive("a", 1, 4)
        #expect(bench.run() == ["a1"])
        #expect(bench.run() == [])
        #expect(bench.succeed("a") == ["b2"])
        bench.arrive("c", 3)
        #expect(bench.run() == [])
        #expect(bench.succeed("b") == ["c3"])
        #expect(bench.succeed("c") == ["a4"])
        #expect(bench.succeed("a") == ["b5"])
        #expect(bench.succeed("b") == [])
        #expect(bench.queue.isIdle && bench.queue.weight == 0)
    }

    @Test func aLaneRunsOneAtATimeAndLanesInParallel() {
        var bench = Bench(jobs: 2)
        bench.arrive("a", 1, 2)
        bench.arrive("b", 3)
        bench.arrive("c", 4)
        #expect(bench.run() == ["a1", "b3"])
        #expect(bench.succeed("b") == ["c4"])
        #expect(bench.succeed("c") == [], "a2 waits for a1")
        #expect(bench.succeed("a") == ["a2"])
    }

    @Test func aFailureHoldsBackItsLaneAlone() {
        var bench = Bench()
        bench.arrive("a", 1, 2)
        bench.arrive("b", 3)
        #expect(bench.run() == ["a1"])
        #expect(bench.fail("a") == .seconds(60))
        #expect(bench.run() == ["b3"])
        #expect(bench.succeed("b") == [])
        bench.arrive("a", 4)
        #expect(bench.run() == [], "news of a held lane starts nothing")
        #expect(bench.queue.wakeUp == bench.now + .seconds(60))
        bench.now += .seconds(60) - .nanoseconds(1)
        #expect(bench.run() == [])
        bench.now += .nanoseconds(1)
        #expect(bench.run() == ["a1"])
        #expect(bench.succeed("a") == ["a2"])
        #expect(bench.succeed("a") == ["a4"])
    }

    @Test func pausesDoubleToAnHour() {
        var bench = Bench(retry: .seconds(1000))
        bench.arrive("a", 1)
        var pauses: [Duration] = []
        for _ in 0..<4 {
            #expect(bench.run() == ["a1"])
            let pause = bench.fail("a") ?? .zero
            pauses.append(pause)
            bench.now += pause
        }
        #expect(pauses == [.seconds(1000), .seconds(2000), .seconds(3600), .seconds(3600)])
        #expect(bench.run() == ["a1"])
        #expect(bench.succeed("a") == [])
        bench.arrive("a", 2)
        #expect(bench.run() == ["a2"])
        #expect(bench.fail("a") == .seconds(1000), "another message begins with the first pause")
    }

    @Test func aLongFirstPauseStaysAsItIs() {
        var bench = Bench(retry: .seconds(7200))
        bench.arrive("a", 1)
        for _ in 0..<2 {
            #expect(bench.run() == ["a1"])
            #expect(bench.fail("a") == .seconds(7200))
            bench.now += .seconds(7200)
        }
    }

    /// The retry asks the daemon: another program may have read the message.
    @Test func whatIsReadMeanwhileIsNotRetried() {
        var bench = Bench()
        bench.arrive("a", 1, 2)
        #expect(bench.run() == ["a1"])
        _ = bench.fail("a")
        bench.unread["a"]?.removeFirst()
        bench.now += .seconds(60)
        #expect(bench.run() == ["a2"])
        #expect(bench.fail("a") == .seconds(60))
    }

    @Test func pagesFollowOneAnother() {
        var bench = Bench()
        bench.page = 2
        bench.arrive("a", 1, 2, 3, 4, 5)
        #expect(bench.run() == ["a1"])
        bench.arrive("a", 6)
        for id in 2...6 { #expect(bench.succeed("a") == ["a\(id)"]) }
        #expect(bench.succeed("a") == [])
        #expect(bench.fetches == ["a", "a after 2", "a after 4", "a"], "the last one because of the news")
        #expect(bench.queue.isIdle)
    }

    /// A page may have no wanted item, and still be followed by others.
    @Test func anEmptyPageIsNotTheLast() {
        var queue = HandlerQueue<String, Letter>(jobs: 1, retry: .seconds(60))
        queue.news(of: "a")
        guard case .fetch("a", nil)? = queue.next(at: .now) else { return #expect(Bool(false)) }
        queue.fetched("a", [], next: "100")
        guard case .fetch("a", "100")? = queue.next(at: .now) else { return #expect(Bool(false)) }
        queue.fetched("a", [], next: nil)
        if queue.next(at: .now) != nil { Issue.record("nothing is left") }
        #expect(queue.isIdle)
    }

    /// News that arrive during a fetch may not be in its page.
    @Test func newsDuringAFetchAreFetched() {
        var queue = HandlerQueue<String, Letter>(jobs: 1, retry: .seconds(60))
        queue.news(of: "a")
        guard case .fetch? = queue.next(at: .now) else { return #expect(Bool(false)) }
        queue.news(of: "a")
        queue.fetched("a", [], next: nil)
        guard case .fetch("a", nil)? = queue.next(at: .now) else { return #expect(Bool(false)) }
    }

    @Test func heldBytesAreLimited() {
        let limit = HandlerQueue<String, Letter>.weightLimit
        var bench = Bench()
        bench.arrive("a", 1, 2, 3, weight: limit / 2)
        bench.arrive("b", 4, weight: limit)
        #expect(bench.run() == ["a1"])
        #expect(bench.queue.weight == 2 * limit, "two of a, and the first of b in any case")
        #expect(bench.succeed("a") == ["a2"])
        #expect(bench.succeed("a") == ["a3"])
        #expect(bench.succeed("a") == ["b4"])
        #expect(bench.succeed("b") == [])
        #expect(bench.queue.weight == 0 && bench.queue.isIdle)
    }

    @Test func aStopWaitsForTheRunning() {
        var bench = Bench(jobs: 2)
        bench.arrive("a", 1, 2)
        bench.arrive("b", 3)
        #expect(bench.run() == ["a1", "b3"])
        bench.queue.stop(at: bench.now)
        #expect(bench.run() == [])
        #expect(bench.succeed("a") == [], "a2 is left")
        #expect(bench.succeed("b") == ["end"])
        #expect(bench.queue.wakeUp == nil)
    }

    @Test func aStopTerminatesAndThenLeaves() {
        var bench = Bench()
        let patience = HandlerQueue<String, Letter>.stopPatience
        bench.arrive("a", 1)
        #expect(bench.run() == ["a1"])
        bench.queue.stop(at: bench.now)
        #expect(bench.queue.wakeUp == bench.now + patience)
        bench.now += patience - .nanoseconds(1)
        #expect(bench.run() == [])
        bench.now += .nanoseconds(1)
        #expect(bench.run() == ["terminate"])
        #expect(bench.queue.wakeUp == bench.now + patience)
        bench.now += patience
        #expect(bench.run() == ["end"])
    }

    @Test func furtherStopsHurry() {
        var bench = Bench()
        bench.arrive("a", 1)
        #expect(bench.run() == ["a1"])
        bench.queue.stop(at: bench.now)
        bench.queue.stop(at: bench.now)
        #expect(bench.run() == ["terminate"])
        #expect(bench.run() == [])
        bench.queue.stop(at: bench.now)
        #expect(bench.run() == ["end"])
    }

    @Test func anIdleStopEndsAtOnce() {
        var bench = Bench()
        bench.queue.stop(at: bench.now)
        #expect(bench.run() == ["end"])
    }
}

@Suite struct ContentTypeTests {
    @Test(arguments: [
        ("text/plain", "text/plain", true), ("text/plain", "Text/Plain; charset=utf-8", true), ("TEXT/*", "text/html", true),
        ("text/plain", "text/plain2", false), ("image/*", "imagex/png", false), ("image/*", "text/plain", false),
        ("text/plain", "", false),
    ])
    func parametersAndCaseDoNotCount(wanted: String, given: String, isIncluded: Bool) throws {
        #expect(try #require(ContentType(argument: wanted)).includes(given) == isIncluded)
    }

    @Test(arguments: ["", "text", "/plain", "text/", "text/plain/x", "text/plain; charset=utf-8", "text /plain"])
    func aMistypedTypeIsRefused(text: String) { #expect(ContentType(argument: text) == nil) }
}
