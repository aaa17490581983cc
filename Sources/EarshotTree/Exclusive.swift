internal import Synchronization

/// A value that is used by one thread at a time, whichever has it: a reader or a writer of a tree, which know nothing of threads.
package final class Exclusive<Value>: Sendable {
    private let lock = Mutex<Void>(())
    /// Safe although the compiler cannot see it: touched only while `lock` is held, and nothing of it leaves but what is Sendable.
    private nonisolated(unsafe) var value: Value

    /// Takes the value over.
    package init(_ value: sending Value) {
        self.value = value
    }

    /// Uses the value alone.
    package func use<Result: Sendable>(_ body: (inout Value) -> Result) -> Result {
        self.lock.withLock { _ in body(&self.value) }
    }

    /// The same where no other thread uses it; `nil`, and nothing done, where one does.
    package func useIfFree<Result: Sendable>(_ body: (inout Value) -> Result) -> Result? {
        self.lock.withLockIfAvailable { _ in body(&self.value) }
    }
}
