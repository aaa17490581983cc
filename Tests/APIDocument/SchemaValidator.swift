import Foundation

/// Holds JSON to the schemas of the API's document, more strictly than a client would: an object has no member that its schema does not
/// name, and a string with `x-extensible-enum` is one of its words. Knows the keywords of JSON Schema that the document uses; any other
/// one is a fault of the document, so that nothing goes unchecked.
struct SchemaValidator {
    let document: JSONValue

    private static let annotations: Set<String> = ["description", "default", "contentEncoding", "title"]

    /// Returns the faults of the value, each with its place.
    func faults(_ value: JSONValue, _ schema: JSONValue, at place: String = "$", isPart: Bool = false) -> [String] {
        var faults: [String] = []
        for (keyword, argument) in schema.members.sorted(by: { $0.key < $1.key }) where !Self.annotations.contains(keyword) {
            faults += self.faults(value, schema, keyword, argument, place)
        }
        if case .object(let members) = value, !isPart, let known = schema["properties"], schema["additionalProperties"] == nil {
            for key in members.keys.sorted() where known[key] == nil { faults.append("\(place).\(key) is not in the document") }
        }
        return faults
    }

    private func faults(
        _ value: JSONValue, _ schema: JSONValue, _ keyword: String, _ argument: JSONValue, _ place: String
    ) -> [String] {
        let fault = ["\(place) is \(value), against \(keyword) \(argument)"]
        switch keyword {
        case "$ref":
            guard let target = self.resolve(argument) else { return ["\(place): \(argument) leads nowhere"] }
            return self.faults(value, target, at: place)
        case "type":
            let types = argument.string.map { [$0] } ?? argument.elements.compactMap(\.string)
            return types.contains(value.type) || (value.type == "integer" && types.contains("number")) ? [] : fault
        case "enum", "x-extensible-enum": return argument.elements.contains(value) ? [] : fault
        case "const": return argument == value ? [] : fault
        case "minimum": return value.number.map { $0 >= argument.number ?? 0 } ?? true ? [] : fault
        case "maximum": return value.number.map { $0 <= argument.number ?? 0 } ?? true ? [] : fault
        case "exclusiveMinimum": return value.number.map { $0 > argument.number ?? 0 } ?? true ? [] : fault
        case "minLength": return value.string.map { self.count($0) >= argument.number ?? 0 } ?? true ? [] : fault
        case "maxLength": return value.string.map { self.count($0) <= argument.number ?? 0 } ?? true ? [] : fault
        case "pattern": return value.string.map { Self.matches($0, argument.string ?? "") } ?? true ? [] : fault
        case "format": return value.string.map { Self.hasFormat($0, argument.string ?? "") } ?? true ? [] : fault
        default: return self.compoundFaults(value, schema, keyword, argument, place)
        }
    }

    private func compoundFaults(
        _ value: JSONValue, _ schema: JSONValue, _ keyword: String, _ argument: JSONValue, _ place: String
    ) -> [String] {
        let fault = ["\(place) is \(value), against \(keyword) \(argument)"]
        switch keyword {
        case "minItems": return value.type != "array" || Decimal(value.elements.count) >= argument.number ?? 0 ? [] : fault
        case "maxItems": return value.type != "array" || Decimal(value.elements.count) <= argument.number ?? 0 ? [] : fault
        case "items":
            return value.elements.enumerated().flatMap { self.faults($1, argument, at: "\(place)[\($0)]") }
        case "properties":
            return argument.members.sorted { $0.key < $1.key }.flatMap { key, schema in
                value[key].map { self.faults($0, schema, at: "\(place).\(key)") } ?? []
            }
        case "required":
            guard value.type == "object" else { return [] }
            return argument.elements.compactMap(\.string).filter { value[$0] == nil }.map { "\(place).\($0) is missing" }
        case "additionalProperties":
            let extra = value.members.filter { schema["properties"]?[$0.key] == nil }
            return extra.sorted { $0.key < $1.key }.flatMap { self.faults($1, argument, at: "\(place).\($0)") }
        case "oneOf":
            let branches = argument.elements.map { self.faults(value, $0, at: place, isPart: $0["$ref"] == nil) }
            guard branches.count(where: \.isEmpty) != 1 else { return [] }
            let closest = branches.min { $0.count < $1.count } ?? []
            return ["\(place) is \(branches.count(where: \.isEmpty)) of \(branches.count) alternatives; closest: \(closest)"]
        case "if":
            let holds = self.faults(value, argument, at: place, isPart: true).isEmpty
            return schema[holds ? "then" : "else"].map { self.faults(value, $0, at: place, isPart: true) } ?? []
        // Judged with their condition.
        case "then", "else": return schema["if"] == nil ? ["\(place): \(keyword) has no condition"] : []
        case "not": return self.faults(value, argument, at: place, isPart: true).isEmpty ? fault : []
        default: return ["\(place): this validator does not know the keyword \(keyword)"]
        }
    }

    /// Returns the schema to which a `$ref` within the document points.
    func resolve(_ reference: JSONValue) -> JSONValue? {
        guard let path = reference.string, path.hasPrefix("#/") else { return nil }
        return path.dropFirst(2).split(separator: "/").reduce(self.document) { $0?[String($1)] }
    }

    private func count(_ text: String) -> Decimal { Decimal(text.unicodeScalars.count) }

    private static func hasFormat(_ text: String, _ format: String) -> Bool {
        switch format {
        case "date-time": self.matches(text, #"^[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9](\.[0-9]+)?Z$"#)
        case "uuid": self.matches(text, "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
        case "binary": true
        default: false
        }
    }

    private static func matches(_ text: String, _ pattern: String) -> Bool {
        guard let expression = try? NSRegularExpression(pattern: pattern) else { return false }
        return expression.firstMatch(in: text, range: NSRange(text.startIndex..., in: text)) != nil
    }
}
