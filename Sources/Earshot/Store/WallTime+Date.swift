import EarshotCore
package import FoundationEssentials

/// Conversion between the core's times and those of this library's API and the store.
extension WallTime {
    /// Creates a time within the years 1 to 9999.
    package init(_ date: Date) {
        self.init(milliseconds: date.boundedMilliseconds)
    }

    /// The time as a `Date` within the years 1 to 9999.
    var date: Date { Date(boundedMilliseconds: self.milliseconds) }
}
