import FoundationEssentials

/// How values stand in JSON (RFC 8259), and the only way in which they are read and written.
///
/// With sorted keys equal values give equal bytes. Fields that a type does not know are ignored, and nothing in the bytes chooses a type.
public struct MessageCoding: Hashable, Sendable, Codable {
    /// What keys look like.
    public enum Keys: String, Hashable, Sendable, Codable, CaseIterable {
        /// As the type's coding keys are written.
        case asDeclared
        /// `maximumSpeed` is written `maximum_speed`, and `buildID` is written `build_id`; both are read back under the name that the type has. Keys of
        /// dictionaries with `String` keys are written as they are.
        ///
        /// If a type has two names that would be written alike, such as `buildId` and `buildID`, the less usual one is written as declared, between
        /// backticks. The same holds for a coding key type that accepts any name.
        case snakeCase
    }

    /// What dates look like.
    public enum Dates: String, Hashable, Sendable, Codable, CaseIterable {
        /// RFC 3339 in UTC with milliseconds, such as `2026-11-21T10:00:00.250Z`; years 1 to 9999, beyond which the nearest is written. Read with
        /// or without a fraction of a second, in UTC or with an offset.
        case iso8601
        /// Seconds since 1970-01-01T00:00:00Z, with a fraction.
        case secondsSince1970
        /// Milliseconds since 1970-01-01T00:00:00Z, with a fraction.
        case millisecondsSince1970
    }

    /// What keys look like.
    public let keys: Keys
    /// What dates look like.
    public let dates: Dates
    /// Whether keys stand in their order, so that equal values are equal bytes; else in any order.
    public let sortsKeys: Bool

    /// Keys as they are declared, dates as text, sorted.
    public static let standard = Self()

    /// A coding from its parts.
    public init(keys: Keys = .asDeclared, dates: Dates = .iso8601, sortsKeys: Bool = true) {
        self.keys = keys
        self.dates = dates
        self.sortsKeys = sortsKeys
    }

    /// The value as JSON in UTF-8, without line breaks.
    /// - Throws: where it cannot be JSON, such as a number that is not finite.
    public func encode(_ value: some Encodable) throws(JSONProblem) -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = self.sortsKeys ? [.sortedKeys, .withoutEscapingSlashes] : [.withoutEscapingSlashes]
        encoder.keyEncodingStrategy =
            switch self.keys {
            case .asDeclared: .useDefaultKeys
            case .snakeCase: .custom { path in DocumentKey(stringValue: path.last.map { KeySpelling.spelling(of: $0) } ?? "") }
            }
        encoder.dateEncodingStrategy =
            switch self.dates {
            case .iso8601: .custom(DateText.encode)
            case .secondsSince1970: .secondsSince1970
            case .millisecondsSince1970: .millisecondsSince1970
            }
        do {
            return Array(try encoder.encode(value))
        } catch EncodingError.invalidValue(_, let context) {
            throw JSONProblem(description: "the value cannot be JSON: \(context.debugDescription)")
        } catch {
            throw JSONProblem(description: "the value cannot be JSON: \(error)")
        }
    }

    /// The value of that type which the JSON is.
    /// - Throws: where it is not UTF-8, not JSON, nested deeper than the decoder goes (512), or not of the type.
    public func decode<Value: Decodable>(_ type: Value.Type, from bytes: some Sequence<UInt8>) throws(JSONProblem) -> Value {
        try self.decode(type, from: bytes, userInfo: [:])
    }

    /// The same, by types that look into the decoder's `userInfo`.
    package func decode<Value: Decodable>(
        _ type: Value.Type, from bytes: some Sequence<UInt8>, userInfo: [CodingUserInfoKey: any Sendable]
    ) throws(JSONProblem) -> Value {
        let data = Data(bytes)
        // The decoder would guess at other encodings, and read around bytes that are none (RFC 8259 section 8.1).
        guard !data.prefix(4).contains(0), String(validating: data, as: UTF8.self) != nil else {
            throw JSONProblem(description: "not a JSON document in UTF-8")
        }
        let decoder = JSONDecoder()
        decoder.userInfo = userInfo
        decoder.dateDecodingStrategy =
            switch self.dates {
            case .iso8601: .custom(DateText.decode)
            case .secondsSince1970: .secondsSince1970
            case .millisecondsSince1970: .millisecondsSince1970
            }
        do {
            return switch self.keys {
            case .asDeclared: try decoder.decode(type, from: data)
            case .snakeCase: try decoder.decode(Spelled<Value>.self, from: data).value
            }
        } catch let error as DecodingError {
            throw JSONProblem(error)
        } catch {
            throw JSONProblem(description: "not a JSON document of the expected form")
        }
    }
}
