import EarshotWire
import FoundationEssentials

/// Times as they are kept and told: whole milliseconds within the years 1 to 9999.
///
/// A peer's clock, a row that an older version has stored and this machine's own clock may say anything; ISO 8601 and its readers know
/// years of four digits alone (RFC 3339 section 5.6). A time beyond the bounds is taken for the nearest one within: it is shown to people
/// and decides nothing, so that it is no reason to lose what it stands beside.
extension Date {
    /// The time so many milliseconds after 1970-01-01T00:00:00Z, or the nearest one within the bounds.
    init(boundedMilliseconds milliseconds: Int64) {
        let bounds = WireLimits.sentAtMilliseconds
        self.init(timeIntervalSince1970: Double(min(max(milliseconds, bounds.lowerBound), bounds.upperBound)) / 1000)
    }

    /// Milliseconds since 1970-01-01T00:00:00Z, within the bounds; 0 for what is no number.
    var boundedMilliseconds: Int64 {
        let bounds = WireLimits.sentAtMilliseconds
        let milliseconds = (self.timeIntervalSince1970 * 1000).rounded()
        return Int64(exactly: min(max(milliseconds, Double(bounds.lowerBound)), Double(bounds.upperBound))) ?? 0
    }
}
