/// An answer of the daemon: its value, and its JSON as received, including parts that this version does not know.
///
/// The properties of the value are also properties of the reply:
///
/// ```swift
/// print(try await client.status().name)
/// ```
@dynamicMemberLookup
public struct ControlReply<Value: Sendable>: Sendable {
    /// The decoded value.
    public let value: Value
    /// The JSON document.
    public let json: [UInt8]
    /// The parts that this version cannot read, as text that may quote a peer. In the value they are missing or unknown.
    public let unreadable: [String]

    /// Creates a reply for a value inside another document, with the value's JSON.
    package init(value: Value, json: [UInt8], unreadable: [String] = []) {
        self.value = value
        self.json = json
        self.unreadable = unreadable
    }

    /// A property of the value.
    public subscript<Property>(dynamicMember path: KeyPath<Value, Property>) -> Property { self.value[keyPath: path] }

    /// Returns the reply if it is wholly readable. For callers that would mistake an unreadable part for an absent one, such as the outcome
    /// of something that they have just started.
    package func whole() throws(ControlError) -> Self {
        guard self.unreadable.isEmpty else { throw .malformed("the daemon's answer: \(self.unreadable.joined(separator: ", "))") }
        return self
    }
}
