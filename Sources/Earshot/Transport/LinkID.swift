import Synchronization

/// Names a connection for as long as the daemon runs: a counter, because the address of an object that is gone is given to the next one.
package struct LinkID: Sendable, Hashable {
    private static let last = Atomic<UInt64>(0)
    private let number: UInt64

    /// One that no connection has had.
    package static func next() -> LinkID {
        LinkID(number: Self.last.wrappingAdd(1, ordering: .relaxed).newValue)
    }
}
