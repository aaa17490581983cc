/// An answer of the daemon: the value, and the JSON as it came, with whatever this version does not know.
package struct ControlReply<Value: Sendable>: Sendable {
    /// What the JSON says.
    package let value: Value
    /// One JSON document.
    package let json: [UInt8]

    /// A value that came inside of another document, and its JSON.
    package init(value: Value, json: [UInt8]) {
        self.value = value
        self.json = json
    }
}
