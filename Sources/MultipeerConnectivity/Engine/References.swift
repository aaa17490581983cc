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

/// Names something of this process that may end and begin anew: no two of a kind are equal.
struct Token<Kind>: Sendable, Hashable {
    private let number: UInt64

    static func next() -> Token { Token(number: lastToken.wrappingAdd(1, ordering: .relaxed).newValue) }
}

private let lastToken = Atomic<UInt64>(0)

/// An advertisement or a search.
typealias ServiceToken = Token<NearbyDiscovery>

/// A session from its beginning, or its last `disconnect()`, to the next one.
typealias SessionToken = Token<MCSession>
