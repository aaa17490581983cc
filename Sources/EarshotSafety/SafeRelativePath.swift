/// A relative path whose components are all ``SafeName``s: a peer's string becomes a path of several components only through this type.
///
/// Components are separated by single slashes. There is no slash at either end, and no `.` or `..`.
package struct SafeRelativePath: Sendable, Hashable, CustomStringConvertible {
    /// The longest path, in bytes of UTF-8 (PATH_MAX).
    package static let byteLimit = 4096
    /// The largest number of components.
    package static let depthLimit = 64

    /// The components, at least one.
    package let components: [SafeName]

    /// Creates a path, checking each component.
    package init(_ text: String) throws(NameRejected) {
        guard text.utf8.count <= Self.byteLimit else {
            throw NameRejected(name: text, reason: "is \(text.utf8.count) bytes long, more than the \(Self.byteLimit) that a path may have")
        }
        // Splits bytes and not characters: "/" with a combining mark is another Character, but the same separator.
        let parts = text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard parts.count <= Self.depthLimit else {
            throw NameRejected(name: text, reason: "has more than the \(Self.depthLimit) components that a path may have")
        }
        var components: [SafeName] = []
        for part in parts { components.append(try SafeName(String(decoding: part, as: UTF8.self))) }
        self.components = components
    }

    private init(_ components: [SafeName]) { self.components = components }

    /// The path as text.
    package var description: String { self.components.map(\.description).joined(separator: "/") }

    /// The last component.
    package var last: SafeName { self.components[self.components.endIndex - 1] }

    /// The path of the directory that contains the last component; `nil` for a path of one component.
    package var folder: SafeRelativePath? {
        self.components.count > 1 ? SafeRelativePath(Array(self.components.dropLast())) : nil
    }
}
