internal import CLinux
import NIOCore
import Synchronization

/// Returns free heap memory to the system some time after a flood, on an event loop for bulk transfers.
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
