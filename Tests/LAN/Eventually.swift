import Testing

/// A condition that did not come true in its time.
struct Late: Error, CustomStringConvertible {
    let description: String
}

/// Waits until a condition holds, asking again and again, and returns how long that took. The limit is generous: it ends a test
/// that would hang, and is no measure of speed. `instead` tells at the end what there is by then; `what` is fixed at the beginning.
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
        // Only paces the asking.
        try await Task.sleep(for: .milliseconds(25))
    }
}

/// Shows a figure in the log; `Tests/run` repeats these at its end.
func measured(_ what: String, _ duration: Duration) {
    let seconds = duration / .seconds(1)
    print("measured: \(what): \((seconds * 1000).rounded() / 1000) s")
}
