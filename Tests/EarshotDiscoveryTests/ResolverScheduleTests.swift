import Earshot
import Testing

@testable import EarshotDiscovery

@Suite struct ResolverScheduleTests {
    private func key(_ number: Int) -> Sighting.Key {
        Sighting.Key(instanceName: "peer \(number)", interfaceIndex: 2, overIPv6: false)
    }

    @Test func opensUpToItsLimitAndLetsTheRestWait() {
        var schedule = ResolverSchedule(maximumKeys: 10, limit: 2, turns: 1)
        #expect(schedule.appeared(self.key(1), now: .zero) == .open)
        #expect(schedule.appeared(self.key(1), now: .zero) == .known)
        #expect(schedule.appeared(self.key(2), now: .zero) == .open)
        #expect(schedule.nextTurn(now: .zero) == nil)
        #expect(schedule.appeared(self.key(3), now: .zero) == .wait)
        #expect(schedule.nextTurn(now: .zero) != nil)
        #expect(!schedule.isOpen(self.key(3)))
    }

    /// Its machine may be back, of which nobody tells: it is asked for at short intervals, and one that never answered at long ones.
    @Test(arguments: [true, false]) func heardRetryLimit(wasHeard: Bool) {
        let limit = wasHeard ? DiscoveryLimits.heardRetryLimit : DiscoveryLimits.resolverRetryLimit
        var schedule = ResolverSchedule()
        _ = schedule.appeared(self.key(1), now: .zero)
        if wasHeard { _ = schedule.resolved(self.key(1), now: .zero) }
        var now = Duration.zero
        for _ in 0..<8 {
            _ = schedule.failed(self.key(1), now: now)
            now += limit
            let opened = schedule.rotate(now: now).open
            #expect(opened == [self.key(1)])
        }
        _ = schedule.failed(self.key(1), now: now)
        let early = schedule.rotate(now: now + limit - .milliseconds(1)).open
        #expect(early == [])
    }

    /// A resolver that Avahi refuses to open does not count as a silence of the machine.
    @Test func aResolverThatCannotBeOpenedIsNoSilence() {
        var schedule = ResolverSchedule()
        _ = schedule.appeared(self.key(1), now: .zero)
        _ = schedule.failed(self.key(1), now: .zero, wasOpen: false)
        #expect(schedule.silences(of: self.key(1)) == 0)
        _ = schedule.rotate(now: DiscoveryLimits.resolverRetryLimit)
        _ = schedule.failed(self.key(1), now: DiscoveryLimits.resolverRetryLimit)
        #expect(schedule.silences(of: self.key(1)) == 1)
        _ = schedule.resolved(self.key(1), now: DiscoveryLimits.resolverRetryLimit)
        #expect(schedule.silences(of: self.key(1)) == 0)
    }

    @Test func refusesPastTheTableAndSaysSoOnce() {
        var schedule = ResolverSchedule(maximumKeys: 2, limit: 1, turns: 1)
        _ = schedule.appeared(self.key(1), now: .zero)
        _ = schedule.appeared(self.key(2), now: .zero)
        #expect(schedule.appeared(self.key(3), now: .zero) == .refuse(isFirst: true))
        #expect(schedule.appeared(self.key(4), now: .zero) == .refuse(isFirst: false))
        #expect(schedule.disappeared(self.key(2)) == .forget)
        #expect(schedule.appeared(self.key(5), now: .zero) == .wait)
    }

    @Test func oneThatGoesGivesItsPlaceToOneThatWaits() {
        var schedule = ResolverSchedule(maximumKeys: 10, limit: 1, turns: 1)
        _ = schedule.appeared(self.key(1), now: .zero)
        _ = schedule.appeared(self.key(2), now: .zero)
        #expect(schedule.disappeared(self.key(1)) == .close)
        #expect(schedule.disappeared(self.key(1)) == .unknown)
        let turn = schedule.rotate(now: .zero)
        #expect(turn.close.isEmpty)
        #expect(turn.open == [self.key(2)])
    }

    @Test func oneThatHasSpokenGivesWayAtOnceToOneNeverHeard() {
        var schedule = ResolverSchedule(maximumKeys: 10, limit: 1, turns: 1)
        _ = schedule.appeared(self.key(1), now: .zero)
        _ = schedule.appeared(self.key(2), now: .zero)
        #expect(schedule.rotate(now: .zero).open.isEmpty)
        let known = schedule.resolved(self.key(1), now: .zero)
        #expect(known)
        let turn = schedule.rotate(now: .zero)
        #expect(turn.close == [self.key(1)])
        #expect(turn.open == [self.key(2)])
    }

    @Test func aSilentResolverGivesWayWhenPatienceEnds() {
        var schedule = ResolverSchedule(maximumKeys: 10, limit: 1, turns: 1)
        _ = schedule.appeared(self.key(1), now: .zero)
        _ = schedule.appeared(self.key(2), now: .zero)
        #expect(schedule.rotate(now: DiscoveryLimits.resolverPatience - .milliseconds(1)).close.isEmpty)
        #expect(schedule.rotate(now: DiscoveryLimits.resolverPatience).close == [self.key(1)])
    }

    @Test func everyInstanceIsResolvedAndThenTheyTakeTurns() {
        var schedule = ResolverSchedule(maximumKeys: 1_000, limit: 10, turns: 2)
        var open: Set<Sighting.Key> = []
        var heard: Set<Sighting.Key> = []
        for number in 0..<100 where schedule.appeared(self.key(number), now: .zero) == .open {
            open.insert(self.key(number))
        }
        var now = Duration.zero
        func turn() {
            for key in open where schedule.resolved(key, now: now) { heard.insert(key) }
            let (close, opened) = schedule.rotate(now: now)
            open.subtract(close)
            open.formUnion(opened)
            #expect(open.count <= 10)
        }
        for _ in 0..<10 {
            turn()
            now += .milliseconds(100)
        }
        #expect(heard.count == 100)
        // From here on two change places a second, and each comes round again.
        heard.removeAll()
        for _ in 0..<60 {
            now += .seconds(1)
            let before = open
            turn()
            #expect(open.subtracting(before).count <= 2)
        }
        turn()
        #expect(heard.count == 100)
    }

    @Test func failuresWaitLongerEachTime() {
        var schedule = ResolverSchedule(maximumKeys: 10, limit: 1, turns: 1)
        _ = schedule.appeared(self.key(1), now: .zero)
        var now = Duration.zero
        for delay in [2, 4, 8, 16, 32, 60, 60] {
            let mustClose = schedule.failed(self.key(1), now: now)
            #expect(mustClose)
            now += .seconds(delay)
            #expect(schedule.rotate(now: now - .milliseconds(1)).open.isEmpty)
            #expect(schedule.rotate(now: now).open == [self.key(1)])
        }
        _ = schedule.resolved(self.key(1), now: now)
        _ = schedule.failed(self.key(1), now: now)
        #expect(schedule.rotate(now: now + .seconds(2)).open == [self.key(1)])
    }

    @Test func whatWasClosedIsNotListenedTo() {
        var schedule = ResolverSchedule()
        let known = schedule.resolved(self.key(1), now: .zero)
        let failed = schedule.failed(self.key(1), now: .zero)
        #expect(!known)
        #expect(!failed)
    }
}
