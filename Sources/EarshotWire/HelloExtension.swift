/// An addition to the protocol that one side's hello announces.
package struct HelloExtension: Sendable, Hashable {
    package var type: UInt16
    package var data: [UInt8]

    package init(type: UInt16, data: [UInt8]) {
        self.type = type
        self.data = data
    }

    /// In an initiator's hello: this is a data connection. Its data is empty, and ignored.
    package static let dataConnection = HelloExtension(type: 1, data: [])
    /// In either side's hello: the side supports the frames by which a stream moves to a data connection. Its data is empty, and ignored.
    package static let streamReroute = HelloExtension(type: 2, data: [])
    /// In either side's hello: the side supports the frames of groups. Its data is empty, and ignored.
    package static let groups = HelloExtension(type: 3, data: [])
    /// In either side's hello: the side accepts offers of files with their attributes. Its data is empty, and ignored.
    package static let fileAttributes = HelloExtension(type: 4, data: [])
    /// In either side's hello: the side accepts messages that name the message to which they reply. Its data is empty, and ignored.
    package static let replies = HelloExtension(type: 5, data: [])
}

extension [HelloExtension] {
    /// Whether an extension of that type is announced, whatever its data.
    package func announce(_ known: HelloExtension) -> Bool { self.contains { $0.type == known.type } }
}
