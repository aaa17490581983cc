import EarshotWire
import FoundationEssentials

/// Times as they are stored and shown: whole milliseconds within the years 1 to 9999.
///
/// A peer's clock, a row from an older version and this machine's own clock may have any value, but ISO 8601 has years of four digits (RFC
/// 3339 section 5.6). A time outside the bounds is replaced by the nearest one inside. Such a time is only shown to users and decides
/// nothing, so it is no reason to lose the data beside it.
extension Date {
    /// Creates the time at this number of milliseconds after 1970-01-01T00:00:00Z, or the nearest one within the bounds.
    init(boundedMilliseconds milliseconds: Int64) {
        let bounds = WireLimits.sentAtMilliseconds
        self.init(timeIntervalSince1970: Double(min(max(milliseconds, bounds.lowerBound), bounds.upperBound)) / 1000)
    }

    /// The milliseconds since 1970-01-01T00:00:00Z within the bounds; 0 if the time is not a number.
    var boundedMilliseconds: Int64 {
        let bounds = WireLimits.sentAtMilliseconds
        let milliseconds = (self.timeIntervalSince1970 * 1000).rounded()
        return Int64(exactly: min(max(milliseconds, Double(bounds.lowerBound)), Double(bounds.upperBound))) ?? 0
    }
}
