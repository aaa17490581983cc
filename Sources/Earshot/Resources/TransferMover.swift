import EarshotCore
import EarshotWire
import NIOCore
import Synchronization

/// What moves one resource's bytes on this machine: a job that does one thing after the other, as the core has it do.
struct TransferMover: Sendable {
    /// What the job is to do; it does so in this order.
    enum Orders: Sendable {
        case upload(AsyncStream<UploadJob.Order>.Continuation)
        case download(AsyncStream<DownloadJob.Order>.Continuation)
    }

    let peer: PeerID
    let orders: Orders
    let state: TransferMoverState

    /// Has it do nothing further, and say so.
    func stop(isKept: Bool) {
        self.state.stop(isKept: isKept)
        switch self.orders {
        case .upload(let orders): orders.finish()
        case .download(let orders): orders.finish()
        }
    }

    /// `false` where it does nothing further.
    func order(_ order: UploadJob.Order) -> Bool {
        guard case .upload(let orders) = self.orders, case .enqueued = orders.yield(order) else { return false }
        return true
    }

    func order(_ order: DownloadJob.Order) -> Bool {
        guard case .download(let orders) = self.orders, case .enqueued = orders.yield(order) else { return false }
        return true
    }
}

/// What a mover and the node both see.
final class TransferMoverState: Sendable {
    private let stopping = Mutex<(isStopped: Bool, isKept: Bool)>((false, false))
    private let moved = Mutex<@Sendable () -> UInt64>({ 0 })

    /// Whether it is to do nothing further.
    var isStopped: Bool { self.stopping.withLock { $0.isStopped } }

    /// Whether what is here of a download is kept then.
    var isKept: Bool { self.stopping.withLock { $0.isKept } }

    /// How far it is, in bytes from the start.
    var position: UInt64 {
        let moved = self.moved.withLock { $0 }
        return moved()
    }

    /// The first word counts.
    func stop(isKept: Bool) {
        self.stopping.withLock { if !$0.isStopped { $0 = (true, isKept) } }
    }

    func counts(_ moved: @escaping @Sendable () -> UInt64) { self.moved.withLock { $0 = moved } }
}
