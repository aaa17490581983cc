import Earshot

/// TXT parsing: the input is a record as it travels, a length byte before each string.
///
/// What is kept is within the limits and has each key once; publishing it again and reading that gives the same pairs; and Avahi's list
/// of strings and ours say the same.
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
        do throws(TXTRecord.Refusal) {
            let published = try TXTRecord.strings(of: pairs)
            demand(TXTRecord.pairs(of: published) == pairs, "what is published is what is read")
        } catch {
            demand(false, "what was taken can be published: \(error)")
        }
        TXTRecord.withList(strings) { list in
            // Avahi keeps no empty strings' content, but every string.
            demand(TXTRecord.strings(of: list, lastFirst: true) == strings, "Avahi's list and ours say the same")
        }
    }
}
