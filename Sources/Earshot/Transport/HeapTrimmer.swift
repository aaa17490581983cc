internal import CLinux
import NIOCore
import Synchronization

/// Gives what a flood has left of free memory back to the system, a while after it, on an event loop that carries bulk.
final class HeapTrimmer: Sendable {
    private let group: any EventLoopGroup
    private let trim: @Sendable () -> Void
    private let isDue = Atomic(false)

    init(on group: any EventLoopGroup, trim: @escaping @Sendable () -> Void = { earshot_trim_heap() }) {
        self.group = group
        self.trim = trim
    }

    func trimSoon() {
        guard !self.isDue.exchange(true, ordering: .relaxed) else { return }
        self.group.any().scheduleTask(in: TimeAmount(EarshotLimits.heapTrimDelay)) {
            self.isDue.store(false, ordering: .relaxed)
            self.trim()
        }
    }
}
