import Testing

/// Waits until a condition holds that no event tells of, asking again and again. The limit is generous: it ends a test that would hang,
/// and is no measure of speed.
func eventually(_ what: Comment, _ condition: () async throws -> Bool) async throws {
    let deadline = ContinuousClock.now + .seconds(20)
    while try await !condition() {
        try #require(ContinuousClock.now < deadline, what)
        // Only paces the asking, and leaves the processor to what is awaited.
        try await Task.sleep(for: .milliseconds(1))
    }
}
