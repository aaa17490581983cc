import Synchronization

/// Counts failed handshakes, from any event loop.
final class HandshakeFailures: Sendable {
    private let counts = Mutex<[EarshotError.Code: UInt64]>([:])

    func count(_ code: EarshotError.Code) { self.counts.withLock { $0[code, default: 0] &+= 1 } }

    var byCode: [EarshotError.Code: UInt64] { self.counts.withLock { $0 } }
}
