public import FoundationEssentials

/// A time in an answer: one that a client cannot read is unknown to it, and costs it nothing else of what it stands in.
@propertyWrapper
public struct ReadableTime: Codable, Hashable, Sendable {
    /// The time; `nil` where it is unknown.
    public let wrappedValue: Date?
    /// What stood there instead of a time, as it came: untrusted.
    private let unreadable: String?

    /// Wraps a time, or that it is unknown.
    public init(_ date: Date?) {
        self.wrappedValue = date
        self.unreadable = nil
    }

    /// Decodes a time; a client takes anything else for an unknown one.
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

    /// Encodes the time, or what stood there.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        if let date = self.wrappedValue { try container.encode(date) } else { try container.encode(self.unreadable) }
    }
}
