internal import Earshot
internal import EarshotWaiting
internal import Synchronization

/// The settings with which the daemon runs, for the control API, and the pending requests to reload them.
///
/// ``ReloadService`` serves the requests one after the other. All requests that arrive during a reload share the next one.
final class RunningSettings: Sendable {
    typealias Outcome = Swift.Result<SettingsReload, EarshotError>

    private struct State {
        var current: SettingsLoader.Result
        var waiting: [OneShot<Outcome>] = []
        var hasEnded = false
    }

    /// The settings with which the daemon was started.
    let started: SettingsLoader.Result
    /// One element for any number of requests.
    let wakes: AsyncStream<Void>
    private let waker: AsyncStream<Void>.Continuation
    private let state: Mutex<State>

    init(_ started: SettingsLoader.Result) {
        self.started = started
        self.state = Mutex(State(current: started))
        (self.wakes, self.waker) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// The settings of the start, or of the last reload that was applied.
    var current: SettingsLoader.Result { self.state.withLock { $0.current } }

    /// Requests a reload without waiting for it.
    func wake() { self.waker.yield() }

    /// Reloads the settings, and returns the changes.
    /// - Throws: `conflict` if the settings are invalid and the previous ones stay; `unavailable` if the daemon stops.
    func reload() async throws(EarshotError) -> SettingsReload {
        let outcome = OneShot<Outcome>()
        let hasEnded = self.state.withLock { state in
            if !state.hasEnded { state.waiting.append(outcome) }
            return state.hasEnded
        }
        guard !hasEnded else { throw Self.stopping }
        self.wake()
        return try await outcome.value().get()
    }

    /// Returns the requests that wait for the next reload, which begins now.
    func takeRequests() -> [OneShot<Outcome>] {
        self.state.withLock { state in
            defer { state.waiting = [] }
            return state.waiting
        }
    }

    /// Records the settings that a reload has applied.
    func adopt(_ loaded: SettingsLoader.Result) { self.state.withLock { $0.current = loaded } }

    /// Ends the reloads: all requests fail from now on.
    func end() {
        self.waker.finish()
        let waiting = self.state.withLock { state in
            defer { state.waiting = [] }
            state.hasEnded = true
            return state.waiting
        }
        for request in waiting { request.settle(.failure(Self.stopping)) }
    }

    private static var stopping: EarshotError { EarshotError(.unavailable, "the daemon is stopping; try again once it runs") }
}
