import EarshotCore
import FoundationEssentials

// Archives hold the times of this library's models as milliseconds since 1970-01-01T00:00:00Z, like those of the core's models.

extension KeyedEncodingContainer {
    mutating func encode(_ date: Date, forKey key: Key) throws { try self.encode(WallTime(date), forKey: key) }

    mutating func encodeIfPresent(_ date: Date?, forKey key: Key) throws {
        try self.encodeIfPresent(date.map { WallTime($0) }, forKey: key)
    }
}

extension KeyedDecodingContainer {
    func decode(_ type: Date.Type, forKey key: Key) throws -> Date { try self.decode(WallTime.self, forKey: key).date }

    func decodeIfPresent(_ type: Date.Type, forKey key: Key) throws -> Date? {
        try self.decodeIfPresent(WallTime.self, forKey: key)?.date
    }
}
