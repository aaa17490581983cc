import EarshotCore
package import FoundationEssentials

/// Times as the core has them, and as this library's API and the store do.
extension WallTime {
    /// Within the years 1 to 9999.
    package init(_ date: Date) {
        self.init(milliseconds: date.boundedMilliseconds)
    }

    /// Within the same.
    var date: Date { Date(boundedMilliseconds: self.milliseconds) }
}
