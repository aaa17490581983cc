import Earshot

/// Which backend `auto` uses, and when it changes: Avahi where it answers, the embedded responder after a while without it, Avahi again
/// when it appears. A value without clock or sockets; `AutomaticDiscovery` carries out what it says. Times are since the start.
struct BackendChooser {
    private enum State: Equatable {
        /// The whole plan is with Avahi, and it answers.
        case avahi
        /// The whole plan is with Avahi, which has been silent; at the deadline the embedded responder takes over.
        case waiting(deadline: Duration)
        /// The embedded responder has the plan; Avahi is only looked for.
        case embedded
    }

    /// What to do at the start.
    enum StartAction: Equatable {
        case startAvahi
        case startEmbedded
    }

    /// What to do when Avahi answers.
    enum AnswerAction: Equatable {
        case nothing
        /// Stop the embedded responder, wait for its goodbye, then start Avahi; what it saw is believed until `forgetEmbedded`.
        case switchToAvahi
    }

    /// What to do when time has passed.
    enum TimerAction: Equatable {
        case nothing
        /// Stop Avahi's part, start the embedded responder and look for Avahi beside it.
        case switchToEmbedded
        /// Say that what the embedded responder saw is gone.
        case forgetEmbedded
    }

    private var state: State
    private var forgetAt: Duration?

    /// A chooser before its start.
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

    /// When `timerFired` is next due.
    var deadline: Duration? {
        switch self.state {
        case .waiting(let deadline): min(deadline, self.forgetAt ?? deadline)
        case .avahi, .embedded: self.forgetAt
        }
    }

    /// Begins; where Avahi cannot be there at all, it is not waited for.
    mutating func start(now: Duration, avahiIsConceivable: Bool) -> StartAction {
        guard avahiIsConceivable else {
            self.state = .embedded
            return .startEmbedded
        }
        self.state = .waiting(deadline: now + DiscoveryLimits.avahiPatience)
        return .startAvahi
    }

    /// Avahi is there.
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

    /// Avahi is not there, or no more.
    mutating func avahiFellSilent(now: Duration) {
        switch self.state {
        case .avahi: self.state = .waiting(deadline: now + DiscoveryLimits.avahiPatience)
        case .waiting, .embedded: break
        }
    }

    /// Time has passed; early calls do nothing.
    mutating func timerFired(now: Duration) -> TimerAction {
        if let forgetAt = self.forgetAt, forgetAt <= now {
            self.forgetAt = nil
            return .forgetEmbedded
        }
        switch self.state {
        case .waiting(let deadline) where deadline <= now:
            // What it saw before is about to be seen again.
            self.forgetAt = nil
            self.state = .embedded
            return .switchToEmbedded
        case .waiting, .avahi, .embedded: return .nothing
        }
    }
}
