import Earshot

/// The choice of the backend that `auto` uses: Avahi if it answers, the embedded responder after a while without it, Avahi again when it
/// appears. A value without clock or sockets; `AutomaticDiscovery` performs its actions. Times are since the start.
struct BackendChooser {
    private enum State: Equatable {
        /// Avahi has the whole plan, and answers.
        case avahi
        /// Avahi has the whole plan, and has been silent. At the deadline the embedded responder takes over.
        case waiting(deadline: Duration)
        /// The embedded responder has the plan, and a probe looks for Avahi.
        case embedded
    }

    /// The action at the start.
    enum StartAction: Equatable {
        case startAvahi
        case startEmbedded
    }

    /// The action when Avahi answers.
    enum AnswerAction: Equatable {
        case nothing
        /// Stop the embedded responder, wait for its goodbye, then start Avahi. The embedded responder's sightings stay valid until
        /// `forgetEmbedded`.
        case switchToAvahi
    }

    /// The action when time has passed.
    enum TimerAction: Equatable {
        case nothing
        /// Stop Avahi's part, start the embedded responder, and look for Avahi beside it.
        case switchToEmbedded
        /// Report the embedded responder's sightings as gone.
        case forgetEmbedded
    }

    private var state: State
    private var forgetAt: Duration?

    /// Creates a chooser before its start.
    init() {
        self.state = .waiting(deadline: .zero)
    }

    /// The backend that has the plan.
    var backend: DiscoveryStatus.Backend {
        switch self.state {
        case .avahi, .waiting: .avahi
        case .embedded: .embedded
        }
    }

    /// The time at which `timerFired` is next due.
    var deadline: Duration? {
        switch self.state {
        case .waiting(let deadline): min(deadline, self.forgetAt ?? deadline)
        case .avahi, .embedded: self.forgetAt
        }
    }

    /// Starts. If Avahi cannot be available at all, the chooser does not wait for it.
    mutating func start(now: Duration, avahiIsConceivable: Bool) -> StartAction {
        guard avahiIsConceivable else {
            self.state = .embedded
            return .startEmbedded
        }
        self.state = .waiting(deadline: now + DiscoveryLimits.avahiPatience)
        return .startAvahi
    }

    /// Records that Avahi is available.
    mutating func avahiAnswered(now: Duration) -> AnswerAction {
        switch self.state {
        case .avahi: return .nothing
        case .waiting:
            self.state = .avahi
            return .nothing
        case .embedded:
            self.state = .avahi
            self.forgetAt = now + DiscoveryLimits.embeddedMemory
            return .switchToAvahi
        }
    }

    /// Records that Avahi is not available, or no longer.
    mutating func avahiFellSilent(now: Duration) {
        switch self.state {
        case .avahi: self.state = .waiting(deadline: now + DiscoveryLimits.avahiPatience)
        case .waiting, .embedded: break
        }
    }

    /// Records that time has passed. Early calls do nothing.
    mutating func timerFired(now: Duration) -> TimerAction {
        if let forgetAt = self.forgetAt, forgetAt <= now {
            self.forgetAt = nil
            return .forgetEmbedded
        }
        switch self.state {
        case .waiting(let deadline) where deadline <= now:
            // Its earlier sightings are about to be found again.
            self.forgetAt = nil
            self.state = .embedded
            return .switchToEmbedded
        case .waiting, .avahi, .embedded: return .nothing
        }
    }
}
