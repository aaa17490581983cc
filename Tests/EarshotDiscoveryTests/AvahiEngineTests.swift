import Earshot
import Logging
import Synchronization
import Testing

@testable import EarshotDiscovery

/// Avahi's error codes (avahi-common/error.h); only EarshotDiscovery itself imports CAvahi.
private enum ErrorCode {
    static let collision: Int32 = -8
    static let dbus: Int32 = -22
    static let disconnected: Int32 = -23
    static let timeout: Int32 = -15
    static let accessDenied: Int32 = -20
    static let notPermitted: Int32 = -50
}

/// A link that does what a test says.
private final class FakeLink: AvahiLink {
    var signals: [AvahiSignal] = []
    var calls: [String] = []
    var connectError: AvahiFailure?
    var takenNames: Set<String> = []
    var publishError: AvahiFailure?

    func connect() throws(AvahiFailure) {
        self.calls.append("connect")
        if let error = self.connectError { throw error }
    }
    func disconnect() {
        self.calls.append("disconnect")
        self.signals.removeAll()
    }
    func publish(name: String, type: String, port: UInt16, txt: [[UInt8]]) throws(AvahiFailure) {
        self.calls.append("publish \(name) \(type)")
        if self.takenNames.contains(name) { throw AvahiFailure(code: ErrorCode.collision, attempt: "advertise") }
        if let error = self.publishError { throw error }
    }
    func unpublish() { self.calls.append("unpublish") }
    func browse(type: String) throws(AvahiFailure) { self.calls.append("browse \(type)") }
    func openResolver(_ key: Sighting.Key, type: String) throws(AvahiFailure) { self.calls.append("open \(key.instanceName)") }
    func closeResolver(_ key: Sighting.Key) { self.calls.append("close \(key.instanceName)") }
    var addressError: AvahiFailure?
    var pingError: AvahiFailure?
    func openAddresses(_ key: Sighting.Key, host: String) throws(AvahiFailure) {
        self.calls.append("follow \(host)")
        if let error = self.addressError { throw error }
    }
    func closeAddresses(_ key: Sighting.Key) { self.calls.append("unfollow \(key.instanceName)") }
    func ping() throws(AvahiFailure) {
        self.pings += 1
        if let error = self.pingError { throw error }
    }
    var pings = 0
    var followsAddresses: Bool { true }
    func refresh() {}

    func takeCalls() -> [String] {
        defer { self.calls.removeAll() }
        return self.calls
    }
}

/// Collects the engine's reports, up to the capacity that a test sets.
private final class Reports: Sendable {
    private let state = Mutex((reports: [BackendReport](), room: Int.max))

    func report(_ report: BackendReport) -> Bool {
        self.state.withLock { state in
            guard state.room > 0 else { return false }
            state.room -= 1
            state.reports.append(report)
            return true
        }
    }
    func setRoom(_ room: Int) { self.state.withLock { $0.room = room } }
    func take() -> [BackendReport] {
        self.state.withLock { state in
            defer { state.reports.removeAll() }
            return state.reports
        }
    }
    func takeEvents() -> [DiscoveryEvent] {
        self.take().compactMap { report in
            if case .event(let event) = report { event } else { nil }
        }
    }
}

@Suite struct AvahiEngineTests {
    private let link = FakeLink()
    private let reports = Reports()
    private let bob = Sighting.Key(instanceName: "bob", interfaceIndex: 1, overIPv6: false)

    private func engine(txt: [TXTPair] = [], advertises: Bool = true, browses: Bool = true) -> AvahiEngine {
        let advertisement = Advertisement(instanceName: "alice", serviceType: "earshot", port: 47110, txt: txt)
        let plan = DiscoveryPlan(advertisement: advertises ? advertisement : nil, serviceType: browses ? "earshot" : nil)
        let reports = self.reports
        return AvahiEngine(backend: .avahi, plan: plan, link: self.link, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }) {
            reports.report($0)
        }
    }

    private func status(_ state: DiscoveryStatus.State, _ error: String? = nil) -> DiscoveryEvent {
        .status(DiscoveryStatus(backend: .avahi, state: state, error: error))
    }

    /// An engine that is up, with bob's resolver open.
    private func upWithBob() -> AvahiEngine {
        let engine = self.engine()
        self.link.signals = [.up]
        _ = engine.work(now: .zero)
        self.link.signals = [.up, .published, .appeared(self.bob, isOwn: false)]
        _ = engine.work(now: .zero)
        _ = self.link.takeCalls()
        _ = self.reports.take()
        return engine
    }

    private func resolved(_ address: String = "127.0.0.1", host: String = "bob.local", txt: [TXTPair] = []) -> AvahiSignal {
        .resolved(self.bob, ResolvedInstance(host: host, address: address, port: 1, txt: txt))
    }

    @Test func publishesAndBrowsesOnceUp() {
        let engine = self.engine()
        _ = engine.work(now: .zero)
        #expect(self.link.takeCalls() == ["connect"])
        self.link.signals = [.up]
        _ = engine.work(now: .zero)
        #expect(self.link.takeCalls() == ["publish alice _earshot._tcp", "browse _earshot._tcp"])
        self.link.signals = [.published]
        _ = engine.work(now: .zero)
        #expect(
            self.reports.take() == [
                .event(self.status(.starting)), .reachable(true), .event(.advertised(instanceName: "alice")), .event(self.status(.running)),
            ])
    }

    @Test func aProbeOnlyLooks() {
        let engine = self.engine(advertises: false, browses: false)
        _ = engine.work(now: .zero)
        self.link.signals = [.up]
        _ = engine.work(now: .zero)
        #expect(self.link.takeCalls() == ["connect"])
        #expect(self.reports.take().contains(.reachable(true)))
    }

    @Test func aMissingBusIsTriedAgainAfterOneAndThenTwoSeconds() {
        let failure = AvahiFailure(code: ErrorCode.dbus, attempt: "reach avahi-daemon")
        self.link.connectError = failure
        let engine = self.engine()
        #expect(engine.work(now: .zero) == .seconds(1))
        #expect(engine.work(now: .seconds(1)) == .seconds(3))
        #expect(engine.work(now: .seconds(2)) == .seconds(3))
        #expect(self.link.takeCalls() == ["connect", "disconnect", "connect", "disconnect"])
        #expect(
            self.reports.take() == [
                .event(self.status(.starting)), .reachable(false), .event(self.status(.unavailable, failure.message)),
            ])
    }

    @Test func aLostDaemonResetsTheViewAndIsSoughtAnew() {
        let engine = self.upWithBob()
        let failure = AvahiFailure(code: ErrorCode.disconnected, attempt: "reach avahi-daemon")
        self.link.signals = [.down(failure), self.resolved()]
        let next = engine.work(now: .seconds(10))
        #expect(next == .seconds(11))
        #expect(
            self.reports.take() == [.event(.reset(.avahi)), .reachable(false), .event(self.status(.unavailable, failure.message))])
        #expect(self.link.takeCalls() == ["disconnect"])
        _ = engine.work(now: next)
        self.link.signals = [.up]
        _ = engine.work(now: next)
        #expect(self.link.takeCalls() == ["connect", "publish alice _earshot._tcp", "browse _earshot._tcp"])
    }

    @Test(arguments: [true, false]) func takenNamesAreNumbered(atOnce: Bool) {
        if atOnce { self.link.takenNames = ["alice"] }
        let engine = self.engine()
        _ = engine.work(now: .zero)
        self.link.signals = [.up]
        _ = engine.work(now: .zero)
        if !atOnce {
            self.link.signals = [.publicationCollided]
            _ = engine.work(now: .zero)
        }
        _ = engine.work(now: .zero)
        self.link.signals = [.published]
        _ = engine.work(now: .zero)
        #expect(self.reports.takeEvents().contains(.advertised(instanceName: "alice #2")))
        #expect(self.link.takeCalls().suffix(1) == ["publish alice #2 _earshot._tcp"])
    }

    @Test func endlessCollisionsPause() {
        let engine = self.engine()
        _ = engine.work(now: .zero)
        self.link.signals = [.up]
        _ = engine.work(now: .zero)
        for _ in 0..<DiscoveryLimits.renames + 1 {
            self.link.signals = [.publicationCollided]
            _ = engine.work(now: .zero)
        }
        _ = self.link.takeCalls()
        _ = engine.work(now: DiscoveryLimits.renamesPause - .milliseconds(1))
        #expect(self.link.takeCalls() == [])
        _ = engine.work(now: DiscoveryLimits.renamesPause)
        #expect(self.link.takeCalls() == ["publish alice _earshot._tcp"])
    }

    @Test func aPublicationThatIsNotConfirmedIsCommittedAnew() {
        let engine = self.engine()
        _ = engine.work(now: .zero)
        self.link.signals = [.up]
        _ = engine.work(now: .zero)
        _ = self.link.takeCalls()
        _ = engine.work(now: DiscoveryLimits.registering - .milliseconds(1))
        #expect(self.link.takeCalls() == [])
        _ = engine.work(now: DiscoveryLimits.registering)
        #expect(self.link.takeCalls() == ["publish alice _earshot._tcp"])
    }

    @Test func aHostRenameWithdrawsAndPublishesAnew() {
        let engine = self.upWithBob()
        self.link.signals = [.paused]
        _ = engine.work(now: .zero)
        #expect(self.link.takeCalls() == ["unpublish"])
        self.link.signals = [.up]
        _ = engine.work(now: .zero)
        #expect(self.link.takeCalls() == ["publish alice _earshot._tcp"])
    }

    @Test func anOversizedRecordNeverReachesAvahiAndBrowsingGoesOn() {
        let engine = self.engine(txt: [TXTPair(key: "k", value: Array(repeating: 0, count: 300))])
        _ = engine.work(now: .zero)
        self.link.signals = [.up]
        _ = engine.work(now: .zero)
        _ = engine.work(now: .seconds(100))
        #expect(self.link.takeCalls() == ["connect", "browse _earshot._tcp"])
        let message = "the discovery info \"k\" takes 302 bytes with its key; shorten it to at most 255; others are still discovered"
        #expect(self.reports.takeEvents().last == self.status(.unavailable, message))
    }

    /// Avahi that lets no user publish: no new connection is made for it, the refusal is said, others are found, and it is asked rarely.
    @Test func aRefusedPublicationIsNoReasonToConnectAnew() {
        let failure = AvahiFailure(code: ErrorCode.notPermitted, attempt: "advertise on the network")
        self.link.publishError = failure
        let engine = self.engine()
        self.link.signals = [.up]
        _ = engine.work(now: .zero)
        self.link.signals = [.up]
        _ = engine.work(now: .zero)
        #expect(self.link.takeCalls() == ["connect", "publish alice _earshot._tcp", "unpublish", "browse _earshot._tcp"])
        let message =
            "cannot advertise on the network: avahi-daemon does not permit it; look for disable-publishing and "
            + "disable-user-service-publishing in avahi-daemon.conf; others are still discovered"
        #expect(self.reports.takeEvents().last == self.status(.unavailable, message))
        self.link.signals = [.appeared(self.bob, isOwn: false), self.resolved()]
        _ = engine.work(now: .seconds(1))
        #expect(self.link.takeCalls() == ["open bob", "follow bob.local"])
        _ = engine.work(now: DiscoveryLimits.refusedRetry - .milliseconds(1))
        #expect(self.link.takeCalls() == [])
        self.link.publishError = nil
        _ = engine.work(now: DiscoveryLimits.refusedRetry)
        #expect(self.link.takeCalls() == ["publish alice _earshot._tcp"])
        self.link.signals = [.published]
        _ = engine.work(now: DiscoveryLimits.refusedRetry)
        #expect(self.reports.takeEvents().last == self.status(.running))
    }

    /// libavahi-client has one code for a bus that does not answer and for a bus that refuses. Only a refusal arrives immediately.
    @Test func aRefusalIsToldFromSilenceByItsTime() {
        let failure = AvahiFailure(code: ErrorCode.dbus, attempt: "browse the network")
        let refused = failure.after(DiscoveryLimits.callPatience - .milliseconds(1))
        #expect(refused == AvahiFailure(code: ErrorCode.accessDenied, attempt: "browse the network") && refused.isRefusal)
        #expect(refused.message == "cannot browse the network: the system bus denies access to avahi-daemon; look at its D-Bus policy")
        #expect(failure.after(DiscoveryLimits.callPatience) == failure && !failure.isRefusal)
        let timeout = AvahiFailure(code: ErrorCode.timeout, attempt: "discover peers")
        #expect(timeout.after(.zero) == timeout && timeout.pause == DiscoveryLimits.retry)
        #expect(AvahiFailure(code: ErrorCode.notPermitted, attempt: "").pause == DiscoveryLimits.refusedRetry)
    }

    @Test func sightingsAreReportedWhenTheyChangeAndLostOnce() {
        let engine = self.upWithBob()
        self.link.signals = [self.resolved(), self.resolved()]
        _ = engine.work(now: .zero)
        let found = self.reports.takeEvents()
        #expect(found.count == 1)
        self.link.signals = [self.resolved("127.0.0.2")]
        _ = engine.work(now: .zero)
        #expect(self.reports.takeEvents().count == 1)
        self.link.signals = [.disappeared(self.bob), .disappeared(self.bob), self.resolved()]
        _ = engine.work(now: .zero)
        #expect(self.reports.takeEvents() == [.lost(.avahi, self.bob)])
        #expect(self.link.takeCalls() == ["follow bob.local", "close bob", "unfollow bob"])
    }

    @Test func aNameThatChangedHandsIsResolvedFromScratch() {
        let engine = self.upWithBob()
        self.link.signals = [self.resolved(txt: [TXTPair(key: "id", value: [1])])]
        _ = engine.work(now: .zero)
        self.link.signals = [self.resolved(txt: [TXTPair(key: "id", value: [2])])]
        #expect(engine.work(now: .zero) == DiscoveryLimits.resolveAnew)
        #expect(self.link.takeCalls() == ["follow bob.local"])
        _ = engine.work(now: DiscoveryLimits.resolveAnew)
        #expect(self.link.takeCalls() == ["open bob"])
    }

    @Test func oneselfIsNotAPeerAndTheLossOfOnesOwnNameIsNotThePeers() {
        let engine = self.upWithBob()
        let alice = Sighting.Key(instanceName: "alice", interfaceIndex: 1, overIPv6: false)
        self.link.signals = [.appeared(alice, isOwn: true)]
        _ = engine.work(now: .zero)
        #expect(self.link.takeCalls() == [])
        self.link.signals = [.appeared(alice, isOwn: false), .disappeared(alice)]
        _ = engine.work(now: .zero)
        #expect(self.link.takeCalls() == ["open alice"])
    }

    /// Avahi reports once, by the name, that an instance is ours. The instance may belong to the peer that had the name before.
    @Test func whoHadTheNameBeforeIsAPeer() {
        let engine = self.upWithBob()
        let keys = ["alice", "Alice", "alice #2"].map { Sighting.Key(instanceName: $0, interfaceIndex: 1, overIPv6: $0 == "Alice") }
        self.link.signals = keys.map { .appeared($0, isOwn: true) }
        _ = engine.work(now: .zero)
        #expect(self.link.takeCalls() == [])
        self.link.signals = [.publicationCollided]
        _ = engine.work(now: .zero)
        let calls = self.link.takeCalls()
        #expect(Set(calls.filter { $0.hasPrefix("open") }) == ["open alice", "open Alice"])
        // The instance was ours after all.
        self.link.signals = [.disappeared(keys[0])]
        _ = engine.work(now: .zero)
        #expect(self.link.takeCalls() == ["close alice", "unfollow alice"])
    }

    /// The peer's machine was switched off. Avahi remembers its name for over an hour, and nothing else.
    @Test func aPeerIsLostAfterRepeatedResolverFailures() {
        let engine = self.upWithBob()
        self.link.signals = [self.resolved()]
        _ = engine.work(now: .zero)
        var now = Duration.zero
        for number in 1...DiscoveryLimits.resolverFailures {
            _ = self.reports.take()
            self.link.signals = [.resolvingFailed(self.bob)]
            _ = engine.work(now: now)
            let isLost = self.reports.takeEvents().contains(.lost(.avahi, self.bob))
            #expect(isLost == (number == DiscoveryLimits.resolverFailures))
            now += DiscoveryLimits.resolverRetryLimit
            _ = engine.work(now: now)
        }
        // The machine is switched on again before Avahi forgets the name.
        _ = self.reports.take()
        self.link.signals = [self.resolved()]
        _ = engine.work(now: now)
        #expect(self.foundAddresses().count == 1)
    }

    /// If many names in a row are taken, the engine replaces the first few immediately, and each later one after a delay.
    @Test func laterRenamesWaitForADelay() {
        let engine = self.engine()
        _ = engine.work(now: .zero)
        self.link.signals = [.up]
        _ = engine.work(now: .zero)
        _ = self.link.takeCalls()
        for number in 1...DiscoveryLimits.quickRenames {
            self.link.signals = [.publicationCollided]
            _ = engine.work(now: .zero)
            let isPublished = self.link.takeCalls().contains { $0.hasPrefix("publish") }
            #expect(isPublished == (number < DiscoveryLimits.quickRenames))
        }
        #expect(engine.work(now: DiscoveryLimits.renameDelay - .milliseconds(1)) <= DiscoveryLimits.renameDelay)
        #expect(self.link.takeCalls() == [])
        _ = engine.work(now: DiscoveryLimits.renameDelay)
        #expect(self.link.takeCalls().count == 1)
    }

    @Test func aFailedResolverIsClosedAndTriedLater() {
        let engine = self.upWithBob()
        self.link.signals = [.resolvingFailed(self.bob)]
        _ = engine.work(now: .zero)
        #expect(self.link.takeCalls() == ["close bob", "unfollow bob"])
        _ = engine.work(now: DiscoveryLimits.resolverRetry)
        #expect(self.link.takeCalls() == ["open bob"])
    }

    private func foundAddresses() -> [[String]] {
        self.reports.takeEvents().compactMap { event in
            if case .found(_, let sighting) = event { sighting.addresses } else { nil }
        }
    }

    @Test func allAddressesOfAHostAreToldAndFollowed() {
        let engine = self.upWithBob()
        func now(_ signals: AvahiSignal...) -> [[String]] {
            self.link.signals = signals
            _ = engine.work(now: .zero)
            return self.foundAddresses()
        }
        // The resolver's one until more is heard.
        #expect(now(self.resolved("10.0.0.7")) == [["10.0.0.7"]])
        #expect(now(.address(self.bob, "10.0.0.7", isPresent: true)) == [])
        #expect(now(.address(self.bob, "10.0.0.6", isPresent: true)) == [["10.0.0.6", "10.0.0.7"]])
        #expect(now(.address(self.bob, "10.0.0.7", isPresent: false)) == [["10.0.0.6"]])
        // A TXT record that changes keeps them; another host has its own.
        #expect(now(self.resolved("10.0.0.7", txt: [TXTPair(key: "k", value: [])])) == [["10.0.0.6"]])
        #expect(self.link.takeCalls() == ["follow bob.local"])
        #expect(now(self.resolved("10.0.0.9", host: "bob-2.local")) == [["10.0.0.9"]])
        #expect(self.link.takeCalls() == ["follow bob-2.local"])
        #expect(now(.disappeared(self.bob), .address(self.bob, "10.0.0.8", isPresent: true)) == [])
    }

    @Test func aHostThatCannotBeFollowedHasTheResolversAddress() {
        let engine = self.upWithBob()
        self.link.addressError = AvahiFailure(code: ErrorCode.dbus, attempt: "resolve")
        self.link.signals = [self.resolved("10.0.0.7"), self.resolved("10.0.0.8")]
        _ = engine.work(now: .zero)
        #expect(self.foundAddresses() == [["10.0.0.7"], ["10.0.0.8"]])
    }

    @Test func aHostKeepsALimitedNumberOfAddresses() throws {
        var host = InstanceHost(name: "bob.local", resolved: "10.0.0.1", isFollowed: true)
        for number in 0..<DiscoveryLimits.addresses { host.note("10.0.1.\(number)", isPresent: true) }
        #expect(host.addresses.count == DiscoveryLimits.addresses)
        host.note("10.0.2.1", isPresent: true)
        #expect(host.addresses.count == DiscoveryLimits.addresses)
        host.note("10.0.1.0", isPresent: false)
        host.note("10.0.2.1", isPresent: true)
        #expect(host.addresses.contains("10.0.2.1"))
    }

    /// Given ten thousand forged instances, the engine keeps as many as the limit allows, and the earlier instances stay.
    @Test func forgedInstancesAboveTheLimitAreIgnored() {
        let engine = self.upWithBob()
        self.link.signals = [self.resolved("10.0.0.7")]
        _ = engine.work(now: .zero)
        let forged = (0..<10_000).map { Sighting.Key(instanceName: "forged \($0)", interfaceIndex: 1, overIPv6: false) }
        var time = Duration.zero
        for start in stride(from: 0, to: forged.count, by: 500) {
            self.link.signals = forged[start..<start + 500].map { .appeared($0, isOwn: false) }
            time += .seconds(1)
            _ = engine.work(now: time)
        }
        #expect(engine.schedule.count == DiscoveryLimits.sightings)
        #expect(engine.schedule.openResolvers <= DiscoveryLimits.openResolvers)
        #expect(engine.sightings[self.bob] != nil)
        #expect(!self.reports.takeEvents().contains(.lost(.avahi, self.bob)))
        // An instance that disappears makes room for another.
        self.link.signals = [.disappeared(forged[0]), .appeared(forged[9_999], isOwn: false)]
        _ = engine.work(now: time)
        #expect(engine.schedule.count == DiscoveryLimits.sightings)
    }

    @Test func thePulseReportsASilentAvahiDaemon() {
        let engine = self.upWithBob()
        let before = self.link.pings
        _ = engine.work(now: DiscoveryLimits.pulse - .milliseconds(1))
        #expect(self.link.pings == before)
        #expect(engine.work(now: DiscoveryLimits.pulse) <= DiscoveryLimits.pulse * 2)
        #expect(self.link.pings == before + 1)
        self.link.pingError = AvahiFailure(code: ErrorCode.timeout, attempt: "discover peers")
        _ = self.reports.take()
        _ = engine.work(now: DiscoveryLimits.pulse * 2)
        #expect(self.link.takeCalls() == ["disconnect"])
        let message = "cannot discover peers: avahi-daemon does not answer; restart it, or set the discovery backend to embedded"
        #expect(self.reports.take().contains(.event(self.status(.unavailable, message))))
        // No resolver is opened while there is no connection.
        let pings = self.link.pings
        self.link.connectError = AvahiFailure(code: ErrorCode.dbus, attempt: "reach avahi-daemon")
        _ = engine.work(now: DiscoveryLimits.pulse * 4)
        #expect(self.link.pings == pings)
    }

    @Test func afterASilenceItSaysAgainWhereItStands() {
        let engine = self.upWithBob()
        _ = engine.work(now: .zero)
        _ = self.reports.take()
        engine.sayAgain()
        _ = engine.work(now: .zero)
        #expect(self.reports.take() == [.reachable(true), .event(self.status(.running))])
    }

    @Test func aReaderTooFarBehindGetsTheViewAnew() {
        let engine = self.upWithBob()
        self.reports.setRoom(0)
        self.link.signals = [self.resolved()]
        _ = engine.work(now: .zero)
        #expect(self.reports.take().isEmpty)
        self.reports.setRoom(.max)
        _ = engine.work(now: DiscoveryLimits.resend)
        let events = self.reports.takeEvents()
        #expect(events.first == .reset(.avahi))
        #expect(events.count == 4)
        #expect(events.contains(.advertised(instanceName: "alice")))
        #expect(events.last == self.status(.running))
    }
}
