internal import Earshot

extension Duration {
    /// A time in seconds from a request, bounded before it becomes a `Duration`, whose initializer traps on what it cannot hold.
    static func request(_ seconds: Double, field: String, atMost limit: Duration) throws(APIProblem) -> Duration {
        let most = limit.components.seconds
        guard seconds.isFinite, seconds <= Double(most) else {
            throw APIProblem(.invalidParameter, "`\(field)` is at most \(most) seconds")
        }
        // Up, so that the shortest time is not none.
        return .milliseconds(Int64((max(seconds, -1) * 1000).rounded(.up)))
    }
}
