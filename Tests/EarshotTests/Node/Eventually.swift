import Testing

/// Polls until a condition holds for which there is no event. The limit is generous: it ends a test that would hang, and does not measure
/// speed. Time alone does not end it, because other processes may suspend a test for half a minute, in which it would not have polled
/// twice.
func eventually(_ what: Comment, _ condition: () async throws -> Bool) async throws {
    let deadline = ContinuousClock.now + .seconds(20)
    var askings = 0
    while try await !condition() {
        askings += 1
        try #require(ContinuousClock.now < deadline || askings < 1000, what)
        // Paces the polling, and leaves the processor to the code under test.
        try await Task.sleep(for: .milliseconds(1))
    }
}
