internal import Synchronization

/// Counts the API's requests by the status of their answers.
final class RequestCounts: Sendable {
    private let counts = Mutex<[Int: UInt64]>([:])

    func count(_ status: Int) { self.counts.withLock { $0[status, default: 0] &+= 1 } }

    var byStatus: [Int: UInt64] { self.counts.withLock { $0 } }
}
