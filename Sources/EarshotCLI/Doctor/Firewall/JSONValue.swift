import FoundationEssentials

/// JSON of any shape: nft's output has about a hundred, of which a few matter here.
indirect enum JSONValue: Decodable, Hashable, Sendable {
    case null
    case bool(Bool)
    case number(Int)
    case string(String)
    case array([JSONValue])
    case object([String: JSONValue])

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try? container.decode(Int.self) {
            self = .number(value)
        } else if let value = try? container.decode(Double.self) {
            // Ports and the other compared values have no fractions.
            self = .string("\(value)")
        } else if let value = try? container.decode(String.self) {
            self = .string(value)
        } else if let value = try? container.decode([JSONValue].self) {
            self = .array(value)
        } else {
            self = .object(try container.decode([String: JSONValue].self))
        }
    }

    subscript(_ key: String) -> JSONValue? {
        guard case .object(let members) = self else { return nil }
        return members[key]
    }

    var text: String? {
        guard case .string(let text) = self else { return nil }
        return text
    }

    var elements: [JSONValue]? {
        guard case .array(let elements) = self else { return nil }
        return elements
    }

    /// The only member of an object such as `{"drop": null}`.
    var only: (key: String, value: JSONValue)? {
        guard case .object(let members) = self, members.count == 1, let member = members.first else { return nil }
        return (member.key, member.value)
    }
}
