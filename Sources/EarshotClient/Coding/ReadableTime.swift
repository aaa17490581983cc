public import FoundationEssentials

/// A time in an answer. If a client cannot read the time, it is unknown, and the rest of the answer is unaffected.
@propertyWrapper
public struct ReadableTime: Codable, Hashable, Sendable {
    /// The time; `nil` if it is unknown.
    public let wrappedValue: Date?
    /// The text in place of an unreadable time, as received; untrusted.
    private let unreadable: String?

    /// Wraps a time, or an unknown time.
    public init(_ date: Date?) {
        self.wrappedValue = date
        self.unreadable = nil
    }

    /// Decodes a time; for a client, anything else is an unknown time.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        do {
            self.wrappedValue = try container.decode(Date.self)
            self.unreadable = nil
        } catch {
            guard decoder.userInfo.unreadable != nil else { throw error }
            self.wrappedValue = nil
            self.unreadable = try? container.decode(String.self)
        }
    }

    /// Encodes the time, or the received text.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        if let date = self.wrappedValue { try container.encode(date) } else { try container.encode(self.unreadable) }
    }
}
