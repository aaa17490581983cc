import Synchronization

/// How far a transfer is, in bytes from its start: counted by the thread that moves them, looked at by the node now and then.
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
