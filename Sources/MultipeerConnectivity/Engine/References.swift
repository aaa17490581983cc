import Synchronization

/// A weak reference for use by several threads.
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

/// Lets only the first of several callers proceed.
final class Once: Sendable {
    private let isDone = Mutex(false)

    /// Returns whether this is the first call.
    func first() -> Bool {
        self.isDone.withLock { isDone in
            defer { isDone = true }
            return !isDone
        }
    }
}

/// An identifier of something in this process that may end and start again. No two of a kind are equal.
struct Token<Kind>: Sendable, Hashable {
    private let number: UInt64

    static func next() -> Token { Token(number: lastToken.wrappingAdd(1, ordering: .relaxed).newValue) }
}

private let lastToken = Atomic<UInt64>(0)

/// The identifier of an advertisement or a search.
typealias ServiceToken = Token<NearbyDiscovery>

/// The identifier of a session from its creation, or its last `disconnect()`, to the next one.
typealias SessionToken = Token<MCSession>
