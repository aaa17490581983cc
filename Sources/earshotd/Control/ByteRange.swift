internal import HTTPTypes

/// The bytes of a content that a request asks for (RFC 9110 section 14): all, one range, or a range outside the content.
enum ByteRange: Sendable, Hashable {
    case whole
    case part(Range<UInt64>)
    case unsatisfiable

    /// Reads `Range` and `If-Range`. Multiple ranges, other units and malformed fields are ignored, as section 14.2 allows. `size` is the
    /// size of the content in bytes, and `tag` is its entity tag. If `If-Range` has another tag, the whole content is requested.
    static func requested(in headers: HTTPFields, of size: UInt64, tag: String?) -> ByteRange {
        guard let text = headers[.range] else { return .whole }
        if let condition = headers[.ifRange], condition != tag { return .whole }
        let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, parts[0].lowercased() == "bytes", !parts[1].contains(",") else { return .whole }
        let bounds = parts[1].split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
        guard bounds.count == 2 else { return .whole }
        switch (Self.number(bounds[0]), Self.number(bounds[1])) {
        case (.some(let first), .some(let last)):
            guard first <= last else { return .whole }
            return first < size ? .part(first..<(min(last, size - 1) + 1)) : .unsatisfiable
        case (.some(let first), nil) where bounds[1].isEmpty:
            return first < size ? .part(first..<size) : .unsatisfiable
        case (nil, .some(let count)) where bounds[0].isEmpty:
            return count > 0 && size > 0 ? .part((size - min(count, size))..<size) : .unsatisfiable
        case (.some, nil), (nil, .some), (nil, nil): return .whole
        }
    }

    /// Parses ASCII digits only. A number that is too large becomes the highest one.
    private static func number(_ text: Substring) -> UInt64? {
        guard !text.isEmpty, text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else { return nil }
        return UInt64(text) ?? .max
    }
}
