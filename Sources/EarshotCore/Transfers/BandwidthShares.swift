/// The division of a limit on bandwidth among the active transfers of one direction. All rates are in bytes per second; `nil` is no limit.
///
/// Each transfer gets an equal share. A transfer whose own limit is below its share leaves the rest to the others.
enum BandwidthShares {
    /// Returns the rates of transfers that have these limits of their own, in the same order.
    static func rates(_ total: UInt64?, among own: [UInt64?]) -> [UInt64?] {
        guard let total else { return own }
        var rates = own
        var left = total
        // In ascending order, the rest of each transfer goes to those after it.
        let ascending = own.indices.sorted { (own[$0] ?? .max, $0) < (own[$1] ?? .max, $1) }
        for (place, index) in ascending.enumerated() {
            let rate = min(own[index] ?? .max, left / UInt64(own.count - place))
            left -= rate
            rates[index] = max(rate, EarshotLimits.smallestShare)
        }
        return rates
    }
}
