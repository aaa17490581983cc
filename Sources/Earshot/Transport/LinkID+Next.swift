import EarshotCore
import Synchronization

/// The number of ids created so far.
private let made = Atomic<UInt64>(0)

extension LinkID {
    /// Returns an id that no other connection has.
    package static func next() -> LinkID {
        LinkID(number: made.wrappingAdd(1, ordering: .relaxed).newValue)
    }
}
