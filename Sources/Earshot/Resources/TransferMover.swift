import EarshotCore
import EarshotWire
import NIOCore
import Synchronization

/// The job that moves one resource's bytes on this machine. It executes the core's commands one after another.
struct TransferMover: Sendable {
    /// The orders for the job, which it executes in order.
    enum Orders: Sendable {
        case upload(AsyncStream<UploadJob.Order>.Continuation)
        case download(AsyncStream<DownloadJob.Order>.Continuation)
    }

    let peer: PeerID
    let orders: Orders
    let state: TransferMoverState

    /// Stops the job after its current order. The job then reports that it has stopped.
    func stop(isKept: Bool) {
        self.state.stop(isKept: isKept)
        switch self.orders {
        case .upload(let orders): orders.finish()
        case .download(let orders): orders.finish()
        }
    }

    /// Adds an order. Returns `false` if the job accepts no more orders.
    func order(_ order: UploadJob.Order) -> Bool {
        guard case .upload(let orders) = self.orders, case .enqueued = orders.yield(order) else { return false }
        return true
    }

    func order(_ order: DownloadJob.Order) -> Bool {
        guard case .download(let orders) = self.orders, case .enqueued = orders.yield(order) else { return false }
        return true
    }
}

/// The state that a mover shares with the node.
final class TransferMoverState: Sendable {
    private let stopping = Mutex<(isStopped: Bool, isKept: Bool)>((false, false))
    private let moved = Mutex<@Sendable () -> UInt64>({ 0 })
    /// Keeps the job at its rate.
    let pacer = TransferPacer()

    /// Whether the job has to stop.
    var isStopped: Bool { self.stopping.withLock { $0.isStopped } }

    /// Whether the received bytes of a stopped download are kept.
    var isKept: Bool { self.stopping.withLock { $0.isKept } }

    /// The progress in bytes from the start.
    var position: UInt64 {
        let moved = self.moved.withLock { $0 }
        return moved()
    }

    /// Stops the job. Only the first call has an effect.
    func stop(isKept: Bool) {
        self.stopping.withLock { if !$0.isStopped { $0 = (true, isKept) } }
    }

    func counts(_ moved: @escaping @Sendable () -> UInt64) { self.moved.withLock { $0 = moved } }
}
