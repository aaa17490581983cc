import Testing

/// Waits until a condition holds that no event tells of, asking again and again. The limit is generous: it ends a test that would hang,
/// and is no measure of speed. Time alone does not end it: a test may be kept from running for half a minute by others, and would not have
/// asked twice then.
func eventually(_ what: Comment, _ condition: () async throws -> Bool) async throws {
    let deadline = ContinuousClock.now + .seconds(20)
    var askings = 0
    while try await !condition() {
        askings += 1
        try #require(ContinuousClock.now < deadline || askings < 1000, what)
        // Only paces the asking, and leaves the processor to what is awaited.
        try await Task.sleep(for: .milliseconds(1))
    }
}
