/// The id of a connection while the daemon runs. A counter, because the address of a released object is reused.
package struct LinkID: Sendable, Hashable {
    package let number: UInt64

    /// Creates an id. The number must be unique.
    package init(number: UInt64) { self.number = number }
}
