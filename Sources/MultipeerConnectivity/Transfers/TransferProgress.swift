public import Foundation
import Synchronization

/// The progress of a resource, in bytes.
final class TransferProgress: Progress, @unchecked Sendable {
    private let listeners = Mutex<[UInt64: AsyncStream<Double>.Continuation]>([:])
    private let last = Mutex<UInt64>(0)

    init(bytes: UInt64) {
        // The parent is the current progress on the thread of a sending program. The engine's tasks have none.
        super.init(parent: Progress.current(), userInfo: nil)
        self.totalUnitCount = Int64(clamping: bytes)
        self.isPausable = false
    }

    func moved(to bytes: UInt64, of total: UInt64) {
        self.totalUnitCount = Int64(clamping: total)
        self.completedUnitCount = Int64(clamping: bytes)
        let fraction = self.fractionCompleted
        self.listeners.withLock { for listener in $0.values { listener.yield(fraction) } }
    }

    func ended() {
        let listeners = self.listeners.withLock { listeners in
            defer { listeners = [:] }
            return Array(listeners.values)
        }
        for listener in listeners { listener.finish() }
    }

    fileprivate func listen(_ listener: AsyncStream<Double>.Continuation) {
        listener.yield(self.fractionCompleted)
        guard !self.isFinished, !self.isCancelled else { return listener.finish() }
        let number = self.last.withLock { last in
            last += 1
            return last
        }
        self.listeners.withLock { $0[number] = listener }
        listener.onTermination = { [weak self] _ in self?.listeners.withLock { $0[number] = nil } }
    }
}

extension Progress {
    /// The completed fraction, from 0 to 1: the current value, and then each change until the end. It replaces key-value observing, which
    /// Linux does not have. A slow reader gets the latest value. For a progress from elsewhere, only the current value is returned.
    public var updates: AsyncStream<Double> {
        let (stream, continuation) = AsyncStream<Double>.makeStream(bufferingPolicy: .bufferingNewest(1))
        if let own = self as? TransferProgress {
            own.listen(continuation)
        } else {
            continuation.yield(self.fractionCompleted)
            continuation.finish()
        }
        return stream
    }
}
