/// Names a connection for as long as the daemon runs: a counter, because the address of an object that is gone is given to the next one.
package struct LinkID: Sendable, Hashable {
    package let number: UInt64

    /// None is made twice.
    package init(number: UInt64) { self.number = number }
}
