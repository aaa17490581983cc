/// Encodes as a whole number of milliseconds since 1970-01-01T00:00:00Z, regardless of the coder's date strategy.
extension WallTime: Codable {
    package init(from decoder: any Decoder) throws {
        self.init(milliseconds: try decoder.singleValueContainer().decode(Int64.self))
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(self.milliseconds)
    }
}
