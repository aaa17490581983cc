import EarshotCore
import Synchronization

/// How many were made.
private let made = Atomic<UInt64>(0)

extension LinkID {
    /// One that no connection has had.
    package static func next() -> LinkID {
        LinkID(number: made.wrappingAdd(1, ordering: .relaxed).newValue)
    }
}
