/// The fault of a JSON document (RFC 8259) that is not as expected, or of a value that cannot be encoded, as text for a user.
public struct JSONProblem: Error, Hashable, Sendable, CustomStringConvertible {
    /// One lower-case sentence without a full stop, with the field and its fault. It may quote a peer's input, so it is untrusted.
    public let description: String

    package init(description: String) { self.description = description }

    /// Creates a problem from a decoder's error.
    package init(_ error: DecodingError) {
        switch error {
        case .keyNotFound(let key, let context):
            self.description = "`\(Self.path(context.codingPath + [key]))` is missing"
        case .typeMismatch(let type, let context):
            self.description = "`\(Self.path(context.codingPath))` is not \(Self.name(of: type))"
        case .valueNotFound(let type, let context):
            self.description = "`\(Self.path(context.codingPath))` is null and not \(Self.name(of: type))"
        case .dataCorrupted(let context):
            self.description =
                context.codingPath.isEmpty ? "not a JSON document" : "`\(Self.path(context.codingPath))`: \(context.debugDescription)"
        @unknown default:
            self.description = "not a JSON document of the expected form"
        }
    }

    private static func path(_ keys: [any CodingKey]) -> String {
        let text = keys.map { key in key.intValue.map { "[\($0)]" } ?? key.stringValue }.joined(separator: ".")
        return text.isEmpty ? "the document" : text.replacing(".[", with: "[")
    }

    private static func name(of type: any Any.Type) -> String {
        switch type {
        case is String.Type: "a string"
        case is Bool.Type: "true or false"
        case is Double.Type, is Int.Type, is UInt64.Type: "a number"
        case is [String: Any].Type: "an object"
        case is [Any].Type: "a list"
        default: "of the expected form"
        }
    }
}
