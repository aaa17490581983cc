internal import Synchronization

/// A value that is used by one thread at a time. It protects a reader or a writer of a tree, which have no locks of their own.
package final class Exclusive<Value>: Sendable {
    private let lock = Mutex<Void>(())
    /// Safe although the compiler cannot see it: accessed only while `lock` is held, and only Sendable results leave.
    private nonisolated(unsafe) var value: Value

    /// Creates the wrapper and takes over the value.
    package init(_ value: sending Value) {
        self.value = value
    }

    /// Calls `body` with exclusive access to the value.
    package func use<Result: Sendable>(_ body: (inout Value) -> Result) -> Result {
        self.lock.withLock { _ in body(&self.value) }
    }

    /// Calls `body` with exclusive access, unless another thread is using the value; `nil` in that case.
    package func useIfFree<Result: Sendable>(_ body: (inout Value) -> Result) -> Result? {
        self.lock.withLockIfAvailable { _ in body(&self.value) }
    }
}
