import Earshot

/// Apple's and DNS-SD's rules for advertisements.
enum ServiceNames {
    /// The maximum size of a TXT record, in bytes, that fits into one packet with the rest (RFC 6763 section 6.2).
    private static let recordLimit = 1300
    /// The maximum size of one string of a TXT record, in bytes (RFC 6763 section 6.1).
    private static let pairLimit = 255
    /// The keys that the node itself uses.
    private static let ownKeys: Set<String> = ["v", "id", "name"]

    /// Returns the service type in its advertised form.
    static func checked(_ serviceType: String) -> String {
        guard let type = try? ServiceType(serviceType.lowercased()) else {
            preconditionFailure(
                "MultipeerConnectivity: \"\(serviceType)\" is no service type: 1 to \(ServiceType.lengthLimit) of a-z, 0-9 and -, with a letter, no hyphen at either end or doubled"
            )
        }
        return type.description
    }

    /// Returns the pairs of a program's discovery info. A key that the node itself uses, or that looks like an escaped one, gets an
    /// underscore as prefix.
    static func pairs(of info: [String: String]) throws(MCError) -> [TXTPair] {
        var total = 0
        var pairs: [TXTPair] = []
        for (key, value) in info.sorted(by: { $0.key < $1.key }) {
            guard !key.isEmpty, key.utf8.allSatisfy({ (0x20...0x7E).contains($0) && $0 != UInt8(ascii: "=") }) else {
                throw MCError(.invalidParameter, "a key of the discovery info is printable ASCII without =")
            }
            let written = Self.ownKeys.contains(key.lowercased()) || key.hasPrefix("_") ? "_" + key : key
            let length = written.utf8.count + 1 + value.utf8.count
            total += length + 1
            guard length <= Self.pairLimit, total <= Self.recordLimit else {
                throw MCError(
                    .invalidParameter, "the discovery info is too long: \(Self.pairLimit) bytes a pair, \(Self.recordLimit) in all")
            }
            pairs.append(TXTPair(key: written, value: Array(value.utf8)))
        }
        return pairs
    }

    /// Returns the id, the display name and the discovery info in a record.
    static func read(_ record: [TXTPair]) -> (id: PeerID, name: String, info: [String: String])? {
        var own: [String: String] = [:]
        var info: [String: String] = [:]
        for pair in record {
            let value = String(decoding: pair.value, as: UTF8.self)
            let key = pair.key.lowercased()
            if Self.ownKeys.contains(key) {
                if own[key] == nil { own[key] = value }
            } else {
                let name = pair.key.hasPrefix("_") ? String(pair.key.dropFirst()) : pair.key
                if info[name] == nil { info[name] = value }
            }
        }
        guard let id = own["id"].flatMap({ PeerID(earshot: $0) }) else { return nil }
        let name = own["name"].flatMap { try? DisplayName($0) }?.description ?? id.description
        return (id, name, info)
    }
}
