public import EarshotWire

/// Ids as tests write them: a text that is the beginning of an id stands for that id, filled up, and any other text for an id of its own.

extension PeerID: ExpressibleByStringLiteral {
    /// Creates the id that a test means by the text.
    public init(stringLiteral text: String) {
        let filled = text + String(repeating: "A", count: max(0, Self.textLength - text.utf8.count))
        self = Self(filled) ?? Self(subjectPublicKeyInfo: text.utf8)
    }
}

extension WireID: ExpressibleByStringLiteral {
    /// Creates the id that a test means by the text.
    public init(stringLiteral text: String) {
        let digits = text.filter { $0 != "-" }
        let filled = digits + String(repeating: "0", count: max(0, 2 * Self.byteCount - digits.utf8.count))
        self = Self(filled) ?? Self(bytes: PeerID(subjectPublicKeyInfo: text.utf8).bytes.prefix(Self.byteCount)) ?? Self(high: 0, low: 0)
    }
}
