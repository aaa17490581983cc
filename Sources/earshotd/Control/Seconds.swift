internal import Earshot

extension Duration {
    /// Converts a time in seconds from a request. The value is checked first, because the initializer of `Duration` traps if the value does
    /// not fit.
    static func request(_ seconds: Double, field: String, atMost limit: Duration) throws(APIProblem) -> Duration {
        let most = limit.components.seconds
        guard seconds.isFinite, seconds <= Double(most) else {
            throw APIProblem(.invalidParameter, "`\(field)` is at most \(most) seconds")
        }
        // Rounds up: a positive time must not become zero.
        return .milliseconds(Int64((max(seconds, -1) * 1000).rounded(.up)))
    }
}
