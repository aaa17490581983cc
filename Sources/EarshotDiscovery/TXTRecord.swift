import CAvahi
import Earshot

/// A DNS-SD TXT record (RFC 6763 section 6), converted between Avahi's string list and ours. Received records are untrusted.
enum TXTRecord {
    /// The reason why a record of ours cannot be published.
    enum Refusal: Error, Equatable {
        case key(String)
        case pairTooLong(key: String, bytes: Int)
        case recordTooLong(bytes: Int)

        /// One sentence that includes the fix.
        var message: String {
            switch self {
            case .key(let key):
                "the discovery info key \"\(key)\" is not printable ASCII without '='; rename it"
            case .pairTooLong(let key, let bytes):
                "the discovery info \"\(key)\" takes \(bytes) bytes with its key; shorten it to at most \(DiscoveryLimits.txtPairBytes)"
            case .recordTooLong(let bytes):
                "the discovery info takes \(bytes) bytes in all; shorten it to at most \(DiscoveryLimits.txtRecordBytes)"
            }
        }
    }

    /// Returns the record's strings, `key=value` each.
    /// - Throws: The reason why the record must not reach Avahi.
    static func strings(of pairs: [TXTPair]) throws(Refusal) -> [[UInt8]] {
        var strings: [[UInt8]] = []
        var total = 0
        for pair in pairs {
            guard self.isKey(pair.key.utf8) else { throw .key(pair.key) }
            let string = Array(pair.key.utf8) + [UInt8(ascii: "=")] + pair.value
            guard string.count <= DiscoveryLimits.txtPairBytes else { throw .pairTooLong(key: pair.key, bytes: string.count) }
            total += string.count + 1
            strings.append(string)
        }
        guard total <= DiscoveryLimits.txtRecordBytes else { throw .recordTooLong(bytes: total) }
        return strings
    }

    /// Returns the pairs in a peer's strings. If a key occurs several times, regardless of case, the first
    /// occurrence counts. A string without `=` has an empty
    /// value, and a string without a key is dropped. Pairs beyond the limits are dropped.
    static func pairs(of strings: some Sequence<[UInt8]>) -> [TXTPair] {
        var pairs: [TXTPair] = []
        var keys: Set<String> = []
        var total = 0
        for string in strings {
            let key = string.prefix { $0 != UInt8(ascii: "=") }
            guard string.count <= DiscoveryLimits.txtPairBytes, self.isKey(key) else { continue }
            total += string.count + 1
            guard total <= DiscoveryLimits.txtRecordBytes, pairs.count < DiscoveryLimits.txtPairs else { break }
            let name = String(decoding: key, as: UTF8.self)
            guard keys.insert(name.lowercased()).inserted else { continue }
            pairs.append(TXTPair(key: name, value: Array(string.dropFirst(key.count + 1))))
        }
        return pairs
    }

    /// Whether the bytes are a key: printable ASCII without `=` (RFC 6763 section 6.4).
    private static func isKey(_ bytes: some Collection<UInt8>) -> Bool {
        !bytes.isEmpty && bytes.allSatisfy { (0x20...0x7E).contains($0) && $0 != UInt8(ascii: "=") }
    }
}

extension TXTRecord {
    /// Calls `body` with the strings as Avahi's list, which lives as long as the call. Avahi's lists begin with the last string.
    static func withList<Result>(_ strings: [[UInt8]], _ body: (UnsafeMutablePointer<AvahiStringList>?) -> Result) -> Result {
        var list: UnsafeMutablePointer<AvahiStringList>?
        for string in strings {
            list = avahi_string_list_add_arbitrary(list, string, string.count)
        }
        defer { avahi_string_list_free(list) }
        return body(list)
    }

    /// Returns the strings of Avahi's list in the record's own order, up to a limit. libavahi-core parses a record last string first. On
    /// the way through D-Bus the list is reversed, so libavahi-client has the first string first.
    static func strings(of list: UnsafeMutablePointer<AvahiStringList>?, lastFirst: Bool) -> [[UInt8]] {
        var strings: [[UInt8]] = []
        var item = list
        while let current = item, strings.count < self.parsedStrings {
            let size = avahi_string_list_get_size(current)
            strings.append(Array(UnsafeBufferPointer(start: avahi_string_list_get_text(current), count: size)))
            item = avahi_string_list_get_next(current)
        }
        return lastFirst ? strings.reversed() : strings
    }

    /// The number of strings in 64 KiB, the longest possible record: the first string may come last.
    private static let parsedStrings = 65_536
}
