/// An answer of the daemon: the value, and the JSON as it came, with whatever this version does not know.
public struct ControlReply<Value: Sendable>: Sendable {
    /// What the JSON says.
    public let value: Value
    /// One JSON document.
    public let json: [UInt8]
    /// What of it this version cannot read, in words that may quote a peer: it is missing in the value, or unknown.
    public let unreadable: [String]

    /// A value that came inside of another document, and its JSON.
    package init(value: Value, json: [UInt8], unreadable: [String] = []) {
        self.value = value
        self.json = json
        self.unreadable = unreadable
    }

    /// The same, for a caller that would take what is missing for what never was: what became of something that it has just begun.
    package func whole() throws(ControlError) -> Self {
        guard self.unreadable.isEmpty else { throw .malformed("the daemon's answer: \(self.unreadable.joined(separator: ", "))") }
        return self
    }
}
