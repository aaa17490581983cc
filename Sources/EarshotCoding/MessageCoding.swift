import FoundationEssentials

/// The representation of values in JSON (RFC 8259). All values are encoded and decoded through this type.
///
/// With sorted keys, equal values give equal bytes. Fields that a type does not know are ignored, and no part of the bytes chooses a type.
public struct MessageCoding: Hashable, Sendable, Codable {
    /// The spelling of keys.
    public enum Keys: String, Hashable, Sendable, Codable, CaseIterable {
        /// Keys are written as the type's coding keys.
        case asDeclared
        /// `maximumSpeed` is written `maximum_speed`, and `buildID` is written `build_id`. Both are decoded under the name that the type
        /// has. Keys of dictionaries with `String` keys are unchanged.
        ///
        /// If a type has two names with the same spelling, such as `buildId` and `buildID`, the less usual one is written as declared,
        /// between backticks. The same holds for a coding key type that accepts any name.
        case snakeCase
    }

    /// The representation of dates.
    public enum Dates: String, Hashable, Sendable, Codable, CaseIterable {
        /// RFC 3339 in UTC with milliseconds, such as `2026-11-21T10:00:00.250Z`. Dates outside the years 1 to 9999 are clamped. Decoding
        /// accepts times with or without a fraction of a second, in UTC or with an offset.
        case iso8601
        /// Seconds since 1970-01-01T00:00:00Z, with a fraction.
        case secondsSince1970
        /// Milliseconds since 1970-01-01T00:00:00Z, with a fraction.
        case millisecondsSince1970
    }

    /// The spelling of keys.
    public let keys: Keys
    /// The representation of dates.
    public let dates: Dates
    /// Whether keys are sorted, so that equal values give equal bytes; otherwise their order is arbitrary.
    public let sortsKeys: Bool

    /// The standard coding: keys as declared, dates as text, sorted keys.
    public static let standard = Self()

    /// Creates a coding from its parts.
    public init(keys: Keys = .asDeclared, dates: Dates = .iso8601, sortsKeys: Bool = true) {
        self.keys = keys
        self.dates = dates
        self.sortsKeys = sortsKeys
    }

    /// Encodes the value as JSON in UTF-8, without line breaks.
    /// - Throws: `JSONProblem` if the value cannot be JSON, such as a number that is not finite.
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

    /// Decodes a value of that type from JSON.
    /// - Throws: `JSONProblem` if the bytes are not UTF-8, not JSON, nested deeper than the decoder supports (512), or not of the type.
    public func decode<Value: Decodable>(_ type: Value.Type, from bytes: some Sequence<UInt8>) throws(JSONProblem) -> Value {
        try self.decode(type, from: bytes, userInfo: [:])
    }

    /// Decodes a value whose type reads the decoder's `userInfo`.
    package func decode<Value: Decodable>(
        _ type: Value.Type, from bytes: some Sequence<UInt8>, userInfo: [CodingUserInfoKey: any Sendable]
    ) throws(JSONProblem) -> Value {
        let data = Data(bytes)
        // The decoder would guess other encodings, and skip invalid bytes (RFC 8259 section 8.1).
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
