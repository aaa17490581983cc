import CAvahi
import Earshot
import Logging

/// The work of a backend: advertise, browse, or both. With neither, the backend only finds out whether its Avahi is available.
struct DiscoveryPlan: Sendable, Hashable {
    let advertisement: Advertisement?
    let serviceType: String?

    /// Looks for avahi-daemon and does nothing else.
    static let probe = DiscoveryPlan(advertisement: nil, serviceType: nil)
}

/// A report of a backend's thread.
enum BackendReport: Sendable, Hashable {
    case event(DiscoveryEvent)
    /// Whether an Avahi is at the other end, regardless of its state.
    case reachable(Bool)
    /// Avahi is present and has not answered for this long.
    case unanswered(for: Duration)
}

/// Drives one `AvahiLink`: keeps it connected, the service published and the peers resolved.
///
/// Runs on the link's thread. `work` takes the link's signals and the passing of time, and returns the latest time of its next call. It
/// blocks only in calls to Avahi.
final class AvahiEngine {
    enum Connection {
        case disconnected(retryAt: Duration)
        case connecting, paused, up
    }

    private enum Publication: Equatable {
        case idle
        /// To be published under the present instance name.
        case pending(at: Duration)
        case registering(since: Duration)
        case established
        case failed(String, retryAt: Duration)
        /// Never to be retried: our own record exceeds Avahi's limits.
        case refused(String)
    }

    enum Browsing: Equatable {
        case idle, running
        case failed(String, retryAt: Duration)
    }

    let backend: DiscoveryStatus.Backend
    let plan: DiscoveryPlan
    let link: any AvahiLink
    let logger: Logger
    /// Delivers a report; `false` if there was no room for it.
    private let report: (BackendReport) -> Bool

    var connection = Connection.disconnected(retryAt: .zero)
    /// The reason why there is no connection.
    private var connectionError: String?
    private var attempts = 0
    private var isReachable: Bool?
    private var publication = Publication.idle
    /// The error of the last publication, as logged; `nil` once one has succeeded.
    private var publicationError: String?
    private var instanceName = ""
    private var renames = 0
    var browsing = Browsing.idle
    var schedule = ResolverSchedule()
    /// Our own instances of this connection, which are not peers. A name can be ours and another's for a moment, so its loss is counted
    /// here first.
    var own: Set<Sighting.Key> = []
    var sightings: [Sighting.Key: Sighting] = [:]
    /// The hosts of instances, as far as they are followed.
    var hosts: [Sighting.Key: InstanceHost] = [:]
    /// The instances whose TXT record changed, with the time at which they are resolved from scratch.
    var resolveAnewAt: [Sighting.Key: Duration] = [:]
    var interfaces = InterfaceCache()
    private var status: DiscoveryStatus?
    private var refreshAt = Duration.zero
    private var pingAt = Duration.zero
    var turnAt: Duration?
    /// When to send the view again, because the reader lacks an event that did not fit.
    private var resendAt: Duration?

    init(
        backend: DiscoveryStatus.Backend, plan: DiscoveryPlan, link: any AvahiLink, logger: Logger,
        report: @escaping (BackendReport) -> Bool
    ) {
        self.backend = backend
        self.plan = plan
        self.link = link
        self.logger = logger
        self.report = report
    }

    /// Does all work that is due. Returns the time of the next call, if nothing happens before.
    func work(now: Duration) -> Duration {
        // Reported before the first call that may block.
        if self.status == nil { self.updateStatus() }
        if case .disconnected(let retryAt) = self.connection, retryAt <= now { self.connect(now: now) }
        self.takeSignals(now: now)
        self.maintainPublication(now: now)
        self.maintainBrowsing(now: now)
        self.rotateResolvers(now: now)
        self.resolveAnew(now: now)
        if case .up = self.connection, self.link.followsAddresses, self.refreshAt <= now {
            self.link.refresh()
            self.refreshAt = now + DiscoveryLimits.addressPoll
        }
        self.ping(now: now)
        // The constructors above may have produced signals.
        self.takeSignals(now: now)
        self.updateStatus()
        self.resendIfNeeded(now: now)
        return self.link.signals.isEmpty ? self.deadline(now: now) : now
    }

    /// Frees Avahi's objects; the last call.
    func stop() {
        self.link.disconnect()
    }

    private func deadline(now: Duration) -> Duration {
        var next = now + .seconds(60)
        switch self.connection {
        case .disconnected(let retryAt): next = min(next, retryAt)
        case .up: next = min(next, self.link.followsAddresses ? self.refreshAt : self.pingAt, self.pingAt)
        case .paused: next = min(next, self.pingAt)
        case .connecting: break
        }
        switch self.publication {
        case .registering(let since): next = min(next, since + DiscoveryLimits.registering)
        case .pending(let due): next = min(next, due)
        case .failed(_, let retryAt): next = min(next, retryAt)
        case .idle, .established, .refused: break
        }
        if case .failed(_, let retryAt) = self.browsing { next = min(next, retryAt) }
        if let turnAt = self.turnAt { next = min(next, turnAt) }
        if let resendAt = self.resendAt { next = min(next, resendAt) }
        if let due = self.resolveAnewAt.values.min() { next = min(next, due) }
        return next
    }

    // MARK: Connection

    private func connect(now: Duration) {
        self.connection = .connecting
        do {
            try self.link.connect()
        } catch {
            self.disconnected(error, now: now)
        }
    }

    private func disconnected(_ failure: AvahiFailure, now: Duration) {
        self.link.disconnect()
        if case .running = self.browsing { self.emit(.reset(self.backend)) }
        self.schedule = ResolverSchedule()
        self.own.removeAll()
        self.sightings.removeAll()
        self.hosts.removeAll()
        self.resolveAnewAt.removeAll()
        self.browsing = .idle
        self.publication = .idle
        self.turnAt = nil
        self.connectionError = failure.message
        self.reachable(false)
        self.connection = .disconnected(retryAt: now + (self.attempts == 0 ? DiscoveryLimits.firstReconnect : DiscoveryLimits.reconnect))
        self.attempts = min(self.attempts + 1, 1_000)
    }

    /// Detects a daemon that hangs by asking it. The watcher of this thread measures how long the answer takes.
    private func ping(now: Duration) {
        switch self.connection {
        case .disconnected, .connecting: return
        case .paused, .up: break
        }
        guard self.pingAt <= now else { return }
        self.pingAt = now + DiscoveryLimits.pulse
        do throws(AvahiFailure) {
            try self.link.ping()
        } catch {
            self.disconnected(error, now: now)
        }
    }

    /// Repeats the status and reachability after this thread has returned from a call that had been reported as hanging.
    func sayAgain() {
        self.status = nil
        if let isReachable = self.isReachable { _ = self.report(.reachable(isReachable)) }
    }

    private func reachable(_ isReachable: Bool) {
        guard self.isReachable != isReachable else { return }
        self.isReachable = isReachable
        _ = self.report(.reachable(isReachable))
    }

    private func takeSignals(now: Duration) {
        while !self.link.signals.isEmpty {
            let signals = self.link.signals
            self.link.signals.removeAll(keepingCapacity: true)
            for signal in signals {
                self.take(signal, now: now)
                if case .disconnected = self.connection { break }
            }
        }
    }

    private func take(_ signal: AvahiSignal, now: Duration) {
        switch signal {
        case .connecting:
            self.connection = .connecting
            self.connectionError = AvahiFailure(code: Int32(AVAHI_ERR_NO_DAEMON), attempt: "discover peers").message
            self.reachable(false)
        case .paused:
            // The host is changing its name: our records must be withdrawn, and published again with the new name (avahi-client/publish.h).
            self.connection = .paused
            if self.publication != .idle { self.link.unpublish() }
            self.publication = .idle
        case .up:
            self.connection = .up
            self.connectionError = nil
            self.attempts = 0
            self.reachable(true)
        case .down(let failure): self.disconnected(failure, now: now)
        case .published:
            self.publication = .established
            self.publicationError = nil
            self.emit(.advertised(instanceName: self.instanceName))
        case .publicationCollided: self.rename(now: now)
        case .publicationFailed(let failure): self.publicationFailed(failure, now: now)
        case .appeared(let key, let isOwn): self.appeared(key, isOwn: isOwn, now: now)
        case .disappeared(let key): self.disappeared(key)
        case .browsingFailed(let failure):
            self.browsing = .failed(failure.message, retryAt: now + failure.pause)
        case .resolved(let key, let instance): self.resolved(key, instance, now: now)
        case .resolvingFailed(let key):
            self.resolvingFailed(key, now: now)
            self.turnAt = self.schedule.nextTurn(now: now)
        case .address(let key, let address, let isPresent): self.addressChanged(key, address, isPresent: isPresent)
        }
    }

    // MARK: Publication

    private func maintainPublication(now: Duration) {
        guard case .up = self.connection, let advertisement = self.plan.advertisement else { return }
        switch self.publication {
        case .idle:
            self.instanceName = advertisement.instanceName
            self.renames = 0
            self.publish(advertisement, now: now)
        case .registering(let since) where since + DiscoveryLimits.registering <= now:
            self.logger.debug("the advertisement was not confirmed in time, publishing it anew")
            self.publish(advertisement, now: now)
        case .pending(let due) where due <= now: self.publish(advertisement, now: now)
        case .failed(_, let retryAt) where retryAt <= now: self.publish(advertisement, now: now)
        case .registering, .pending, .failed, .established, .refused: break
        }
    }

    private func publish(_ advertisement: Advertisement, now: Duration) {
        let strings: [[UInt8]]
        do {
            strings = try TXTRecord.strings(of: advertisement.txt)
            try InstanceName.check(self.instanceName)
        } catch let refusal as TXTRecord.Refusal {
            return self.refuse(refusal.message)
        } catch {
            return self.refuse(
                "the instance name is not 1 to \(DiscoveryLimits.instanceNameBytes) bytes without NUL; change the peer's name")
        }
        do throws(AvahiFailure) {
            try self.link.publish(
                name: self.instanceName, type: "_\(advertisement.serviceType)._tcp", port: advertisement.port, txt: strings)
            self.publication = .registering(since: now)
        } catch  where error.isCollision {
            self.rename(now: now)
        } catch {
            self.link.unpublish()
            self.publicationFailed(error, now: now)
        }
    }

    private func publicationFailed(_ failure: AvahiFailure, now: Duration) {
        if self.publicationError != failure.message { self.logger.warning("not advertised: \(failure.message)") }
        self.publicationError = failure.message
        self.publication = .failed(failure.message, retryAt: now + failure.pause)
    }

    private func refuse(_ message: String) {
        self.logger.error("not advertised: \(message)")
        self.publication = .refused(message)
    }

    /// Takes the next name. The next `maintainPublication` publishes it.
    private func rename(now: Duration) {
        self.link.unpublish()
        self.renames += 1
        let taken = self.instanceName
        self.releaseOwn(named: taken, now: now)
        if self.renames > DiscoveryLimits.renames {
            self.renames = 0
            self.instanceName = self.plan.advertisement?.instanceName ?? self.instanceName
            self.publication = .failed(
                "cannot advertise on the network: \(DiscoveryLimits.renames) instance names in a row are taken; change the peer's name",
                retryAt: now + DiscoveryLimits.renamesPause)
        } else {
            self.instanceName = InstanceName.alternative(to: taken)
            self.logger.info(
                "the instance name is taken, trying the next", metadata: ["taken": "\(taken)", "next": "\(self.instanceName)"])
            self.publication = .pending(at: self.renames < DiscoveryLimits.quickRenames ? now : now + DiscoveryLimits.renameDelay)
        }
    }

    /// Treats instances that Avahi took for ours, because they have the name that we tried, as another's: Avahi does not report them again.
    /// If one was ours after all, it is now found as a peer, which the node ignores, until Avahi forgets it.
    private func releaseOwn(named name: String, now: Duration) {
        for key in self.own
        where key == Sighting.Key(instanceName: name, interfaceIndex: key.interfaceIndex, overIPv6: key.overIPv6) {
            self.own.remove(key)
            self.appeared(key, isOwn: false, now: now)
        }
    }

    // MARK: Reports

    private func updateStatus() {
        let status = self.currentStatus
        guard status != self.status else { return }
        self.status = status
        self.emit(.status(status))
    }

    private var currentStatus: DiscoveryStatus {
        if let error = self.connectionError { return DiscoveryStatus(backend: self.backend, state: .unavailable, error: error) }
        guard case .up = self.connection else { return DiscoveryStatus(backend: self.backend, state: .starting) }
        if case .failed(let error, _) = self.browsing {
            return DiscoveryStatus(backend: self.backend, state: .unavailable, error: error)
        }
        switch self.publication {
        case .failed(let error, _), .refused(let error):
            let words = self.browsing == .running ? "\(error); others are still discovered" : error
            return DiscoveryStatus(backend: self.backend, state: .unavailable, error: words)
        case .pending, .registering: return DiscoveryStatus(backend: self.backend, state: .starting)
        case .idle, .established: return DiscoveryStatus(backend: self.backend, state: .running)
        }
    }

    func emit(_ event: DiscoveryEvent) {
        // While the reader lacks an event, no more are sent: the whole view follows instead.
        guard self.resendAt == nil else { return }
        if !self.report(.event(event)) { self.resendAt = .zero }
    }

    /// Sends the whole view after an event did not fit, and retries later if it still does not fit.
    private func resendIfNeeded(now: Duration) {
        guard let resendAt = self.resendAt, resendAt <= now else { return }
        self.resendAt = nil
        self.emit(.reset(self.backend))
        for sighting in self.sightings.values { self.emit(.found(self.backend, sighting)) }
        if self.publication == .established { self.emit(.advertised(instanceName: self.instanceName)) }
        if let status = self.status { self.emit(.status(status)) }
        if self.resendAt != nil { self.resendAt = now + DiscoveryLimits.resend }
    }
}
