import Synchronization

/// The progress of a transfer in bytes from its start. The thread that moves the bytes writes it, and the node reads it.
package final class TransferCount: Sendable {
    private let bytes: Atomic<UInt64>

    package init(_ bytes: UInt64 = 0) {
        self.bytes = Atomic(bytes)
    }

    package var value: UInt64 {
        get { self.bytes.load(ordering: .relaxed) }
        set { self.bytes.store(newValue, ordering: .relaxed) }
    }
}
