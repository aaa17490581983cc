import Testing

/// The error if a condition did not become true in time.
struct Late: Error, CustomStringConvertible {
    let description: String
}

/// Waits until a condition holds, checking it repeatedly, and returns how long that took. The limit is generous: it ends a test that would
/// hang, and does not measure speed. `instead` describes the state at the end; `what` is fixed at the beginning.
@discardableResult
func eventually(
    within limit: Duration = .seconds(20), _ what: String, instead: (() -> String)? = nil, _ condition: () async throws -> Bool
) async throws -> Duration {
    let clock = ContinuousClock()
    let began = clock.now
    while true {
        if try await condition() { return clock.now - began }
        guard clock.now - began < limit else {
            throw Late(description: "waited \(limit) in vain until \(what)\(instead.map { "; instead: \($0())" } ?? "")")
        }
        // Only paces the checks.
        try await Task.sleep(for: .milliseconds(25))
    }
}

/// Prints a figure to the log; `Tests/run` repeats the figures at its end.
func measured(_ what: String, _ duration: Duration) {
    let seconds = duration / .seconds(1)
    print("measured: \(what): \((seconds * 1000).rounded() / 1000) s")
}
