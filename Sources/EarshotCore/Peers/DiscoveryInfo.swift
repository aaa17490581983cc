package import EarshotWire

/// The advertisement's TXT record: Earshot's own pairs, then the user's pairs, within the limits (RFC 6763 section 6).
package enum DiscoveryInfo {
    /// Earshot's own keys, which a user may not set.
    package static let ownKeys: Set<String> = ["v", "id", "name"]

    /// Checks a user's pairs.
    /// - Throws: `invalid-parameter`, naming the violated rule.
    package static func validate(_ pairs: [String: String]) throws(EarshotError) {
        var seen: Set<String> = []
        var total = 0
        for (key, value) in pairs.sorted(by: { $0.key < $1.key }) {  // order does not show: sorted at once
            guard !key.isEmpty, key.utf8.allSatisfy({ (0x20...0x7E).contains($0) && $0 != UInt8(ascii: "=") }) else {
                throw EarshotError(.invalidParameter, "a discovery key is printable ASCII without =, which \(key.debugDescription) is not")
            }
            guard !self.ownKeys.contains(key.lowercased()) else {
                throw EarshotError(.invalidParameter, "the discovery key \(key) is earshot's own; choose another")
            }
            guard seen.insert(key.lowercased()).inserted else {
                throw EarshotError(.invalidParameter, "the discovery key \(key) is given twice; its case does not count")
            }
            let bytes = key.utf8.count + 1 + value.utf8.count
            guard bytes <= EarshotLimits.discoveryPairBytes else {
                throw EarshotError(
                    .invalidParameter, "the discovery pair \(key) has \(bytes) bytes, of at most \(EarshotLimits.discoveryPairBytes)")
            }
            total += bytes
        }
        guard total <= EarshotLimits.discoveryInfoBytes else {
            throw EarshotError(
                .invalidParameter, "the discovery pairs have \(total) bytes together, of at most \(EarshotLimits.discoveryInfoBytes)")
        }
    }

    /// Returns the pairs of the whole record.
    package static func record(id: PeerID, name: DisplayName, pairs: [String: String]) -> [TXTPair] {
        let own = [("v", "1"), ("id", id.description), ("name", name.description)]
        let others = pairs.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }  // order does not show: sorted at once
        return (own + others).map { TXTPair(key: $0.0, value: Array($0.1.utf8)) }
    }

    /// Returns the usable parts of a peer's advertisement; `nil` if the record is not an Earshot advertisement.
    package static func read(_ record: [TXTPair], instanceName: String) -> (id: PeerID, name: String, pairs: [String: String])? {
        var own: [String: String] = [:]
        var pairs: [String: String] = [:]
        for pair in record {
            guard let value = String(validating: pair.value, as: UTF8.self) else { continue }
            let key = pair.key.lowercased()
            if self.ownKeys.contains(key) {
                own[key] = own[key] ?? value
            } else if pairs.count < EarshotLimits.discoveryPairs {
                pairs[pair.key] = pairs[pair.key] ?? value
            }
        }
        guard let id = own["id"].flatMap({ PeerID(earshot: $0) }) else { return nil }
        let name = own["name"].flatMap { try? DisplayName($0) } ?? (try? DisplayName(instanceName))
        return (id, name?.description ?? id.description, pairs)
    }
}
