import Synchronization

/// Counts handshakes that came to nothing, on whichever event loop they did.
final class HandshakeFailures: Sendable {
    private let counts = Mutex<[EarshotError.Code: UInt64]>([:])

    func count(_ code: EarshotError.Code) { self.counts.withLock { $0[code, default: 0] &+= 1 } }

    var byCode: [EarshotError.Code: UInt64] { self.counts.withLock { $0 } }
}
