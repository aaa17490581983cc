import Foundation

extension JSONValue: Encodable {
    /// Encodes the document.
    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .bool(let value): try container.encode(value)
        case .number(let value): try container.encode(value)
        case .string(let value): try container.encode(value)
        case .array(let value): try container.encode(value)
        case .object(let value): try container.encode(value)
        }
    }

    /// Returns the value as JSON text.
    package func bytes() throws -> [UInt8] { Array(try JSONEncoder().encode(self)) }

    /// A step on the path to a part of a document.
    package enum Step: Hashable, Sendable {
        case key(String)
        case index(Int)
    }

    /// Returns the document with another value in a place, or without the place if the value is `nil`.
    package func replacing(_ place: some Collection<Step>, with value: JSONValue?) -> JSONValue {
        guard let step = place.first else { return value ?? .null }
        let rest = place.dropFirst()
        switch (self, step) {
        case (.object(var members), .key(let key)):
            members[key] = rest.isEmpty ? value : (members[key] ?? .null).replacing(rest, with: value)
            return .object(members)
        case (.array(var elements), .index(let index)):
            elements[index] = elements[index].replacing(rest, with: value)
            return .array(elements)
        default: return self
        }
    }
}

extension APIDocument {
    /// A part of a document, and what the API says of it.
    package struct Place: Sendable {
        /// The steps from the document's root to the part.
        package let steps: [JSONValue.Step]
        /// The part itself.
        package let value: JSONValue
        /// The part's schema, with its reference resolved.
        package let schema: JSONValue
    }

    /// Returns every part of a document that the schema with this name describes, the whole document first.
    package func places(_ value: JSONValue, as name: String) -> [Place] {
        self.schema(name).map { self.places(value, $0, []) } ?? []
    }

    private func places(_ value: JSONValue, _ schema: JSONValue, _ steps: [JSONValue.Step]) -> [Place] {
        let validator = SchemaValidator(document: self.root)
        if let reference = schema["$ref"] {
            return validator.resolve(reference).map { self.places(value, $0, steps) } ?? []
        }
        if schema["properties"] == nil, let branch = schema["oneOf"]?.elements.first(where: { validator.faults(value, $0).isEmpty }) {
            return self.places(value, branch, steps)
        }
        let members = value.members.keys.sorted().flatMap { key in
            (schema["properties"]?[key]).map { self.places(value[key] ?? .null, $0, steps + [.key(key)]) } ?? []
        }
        let elements = value.elements.enumerated().flatMap { index, element in
            schema["items"].map { self.places(element, $0, steps + [.index(index)]) } ?? []
        }
        return [Place(steps: steps, value: value, schema: schema)] + members + elements
    }
}
