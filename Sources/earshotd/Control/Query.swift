internal import Earshot
internal import Hummingbird
internal import HummingbirdCore

/// The query of a request. An invalid value is an error, but an unknown key is not.
struct Query: Sendable {
    private let values: [(key: String, value: String)]

    /// Splits and decodes the query. A `+` is a plus sign, because the query is not a form.
    init(_ request: Request) throws(APIProblem) {
        var values: [(key: String, value: String)] = []
        for pair in (request.uri.query ?? "").split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let key = String(parts[0]).percentDecoded, let value = (parts.count > 1 ? String(parts[1]) : "").percentDecoded else {
                throw APIProblem(.invalidParameter, "the query is not percent-encoded UTF-8")
            }
            values.append((key, value))
        }
        self.values = values
    }

    /// Returns the value of a key, or `nil` if it is absent or empty.
    /// - Throws: `invalid-parameter` if the key occurs twice, because the query is then ambiguous.
    func text(_ key: String) throws(APIProblem) -> String? {
        let values = self.values.filter { $0.key == key }
        guard values.count <= 1 else { throw APIProblem(.invalidParameter, "'\(key)' is more than once in the query; give it once") }
        guard let value = values.first?.value, !value.isEmpty else { return nil }
        return value
    }

    /// Returns all values of a key that may be repeated.
    func all(_ key: String) -> [String] { self.values.filter { $0.key == key && !$0.value.isEmpty }.map(\.value) }

    /// Returns the value of a key that is `true` or `false`; `false` if it is absent.
    func flag(_ key: String) throws(APIProblem) -> Bool {
        switch try self.text(key) {
        case nil, "false": return false
        case "true": return true
        default: throw APIProblem(.invalidParameter, "'\(key)' in the query is true or false")
        }
    }

    /// Returns the value of a key that is a whole number; `nil` if it is absent.
    func number(_ key: String, _ range: ClosedRange<UInt64>) throws(APIProblem) -> UInt64? {
        guard let text = try self.text(key) else { return nil }
        guard text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }), let number = UInt64(text),
            range.contains(number)
        else {
            throw APIProblem(.invalidParameter, "'\(key)' in the query is a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    /// Returns the value of a key that is one of a few words; `nil` if it is absent.
    func choice(_ key: String, _ words: [String]) throws(APIProblem) -> String? {
        guard let text = try self.text(key) else { return nil }
        guard words.contains(text) else {
            throw APIProblem(.invalidParameter, "'\(key)' in the query is one of \(words.joined(separator: ", "))")
        }
        return text
    }
}
