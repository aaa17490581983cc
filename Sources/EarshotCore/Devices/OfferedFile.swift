/// A file that a LocalSend device offers, as a user sees it before the decision. Every field is untrusted.
public struct OfferedFile: Sendable, Hashable, Codable {
    /// The name, which may be a relative path with `/`.
    public let name: String
    /// The size in bytes.
    public let size: UInt64
    /// The content type, such as `image/jpeg`.
    public let contentType: String

    package init(name: String, size: UInt64, contentType: String) {
        self.name = name
        self.size = size
        self.contentType = contentType
    }
}
