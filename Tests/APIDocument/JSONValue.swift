package import Foundation

/// Any JSON document, as a value.
package enum JSONValue: Hashable, Sendable, Decodable {
    case null
    case bool(Bool)
    /// A whole number is exact up to 2^64-1.
    case number(Decimal)
    case string(String)
    case array([JSONValue])
    case object([String: JSONValue])

    /// Decodes whatever there is.
    package init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try? container.decode(Decimal.self) {
            self = .number(value)
        } else if let value = try? container.decode(String.self) {
            self = .string(value)
        } else if let value = try? container.decode([JSONValue].self) {
            self = .array(value)
        } else {
            self = .object(try container.decode([String: JSONValue].self))
        }
    }

    /// Parses a document.
    package init(parsing bytes: some Sequence<UInt8>) throws {
        self = try JSONDecoder().decode(JSONValue.self, from: Data(bytes))
    }

    /// A member of an object.
    package subscript(key: String) -> JSONValue? {
        if case .object(let members) = self { members[key] } else { nil }
    }

    /// The members of an object; none of anything else.
    package var members: [String: JSONValue] {
        if case .object(let members) = self { members } else { [:] }
    }

    /// The elements of an array; none of anything else.
    package var elements: [JSONValue] {
        if case .array(let elements) = self { elements } else { [] }
    }

    /// The string, where it is one.
    package var string: String? {
        if case .string(let text) = self { text } else { nil }
    }

    /// The number, where it is one.
    package var number: Decimal? {
        if case .number(let number) = self { number } else { nil }
    }

    /// The name of its type in JSON Schema: a whole number is an `integer`.
    package var type: String {
        switch self {
        case .null: "null"
        case .bool: "boolean"
        case .number(let number): number.isWhole ? "integer" : "number"
        case .string: "string"
        case .array: "array"
        case .object: "object"
        }
    }
}

extension Decimal {
    fileprivate var isWhole: Bool {
        var value = self
        var rounded = Decimal()
        NSDecimalRound(&rounded, &value, 0, .plain)
        return rounded == self
    }
}
