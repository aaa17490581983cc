import Earshot

/// TXT parsing: the input is a record as it travels, a length byte before each string.
///
/// The parsed pairs are within the limits and have each key once. If they are published and parsed again, they are the same. Avahi's list
/// of strings and ours are equal.
enum TXTHarness: Harness {
    static func run(_ input: [UInt8]) {
        var strings: [[UInt8]] = []
        var rest = input[...]
        while let length = rest.popFirst() {
            strings.append(Array(rest.prefix(Int(length))))
            rest = rest.dropFirst(Int(length))
        }
        let pairs = TXTRecord.pairs(of: strings)
        demand(pairs.count <= DiscoveryLimits.txtPairs, "pairs are bounded")
        demand(Set(pairs.map { $0.key.lowercased() }).count == pairs.count, "a key counts once, whatever its case")
        // A key that arrived without its equals sign takes one more byte when it is published, and may then be too long.
        let sizes = pairs.map { $0.key.utf8.count + 1 + $0.value.count }
        let total = sizes.reduce(0) { $0 + $1 + 1 }
        let fits = sizes.allSatisfy { $0 <= DiscoveryLimits.txtPairBytes } && total <= DiscoveryLimits.txtRecordBytes
        do throws(TXTRecord.Refusal) {
            let published = try TXTRecord.strings(of: pairs)
            demand(fits, "nothing is published beyond the limits")
            demand(TXTRecord.pairs(of: published) == pairs, "what is published is what is read")
        } catch {
            demand(!fits, "what was taken can be published: \(error)")
        }
        TXTRecord.withList(strings) { list in
            demand(TXTRecord.strings(of: list, lastFirst: true) == strings, "Avahi's list and ours say the same")
        }
    }
}
