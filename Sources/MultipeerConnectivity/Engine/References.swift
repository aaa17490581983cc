import Synchronization

/// A reference that holds nothing, and that several threads use.
final class WeakReference<Value>: Sendable {
    private struct State: ~Copyable, @unchecked Sendable {
        weak var value: AnyObject?
    }

    private let state: Mutex<State>

    init(_ value: Value? = nil) { self.state = Mutex(State(value: value as AnyObject?)) }

    var value: Value? {
        get { self.state.withLock { $0.value as? Value } }
        set {
            nonisolated(unsafe) let object = newValue as AnyObject?
            self.state.withLock { $0.value = object }
        }
    }
}

/// Lets one of several callers through.
final class Once: Sendable {
    private let isDone = Mutex(false)

    /// Whether this is the first call.
    func first() -> Bool {
        self.isDone.withLock { isDone in
            defer { isDone = true }
            return !isDone
        }
    }
}

/// Names an advertisement or a search of this process.
struct ServiceToken: Sendable, Hashable {
    private let number: UInt64
    private static let last = Atomic<UInt64>(0)

    static func next() -> ServiceToken { ServiceToken(number: self.last.wrappingAdd(1, ordering: .relaxed).newValue) }
}

/// Names a session from its beginning, or its last `disconnect()`, to the next one.
struct SessionToken: Sendable, Hashable {
    private let number: UInt64
    private static let last = Atomic<UInt64>(0)

    static func next() -> SessionToken { SessionToken(number: self.last.wrappingAdd(1, ordering: .relaxed).newValue) }
}
