/// A source that was opened for a caller, for the transfers that start within the call. All transfers of a file share it. Any other source
/// goes to the first transfer, and each of the others opens the source again when its turn comes.
///
/// The entries of a large directory take tens of megabytes. Held for each of many receivers, they would take gigabytes. A file takes one
/// descriptor, which any number of transfers can read at any offset. The caller may remove the file when the call is over.
final class OpenedContent {
    /// The source of the bytes.
    enum Content: Sendable {
        case source(any ResourceSource)
        case body(BodySource)
    }

    private var content: Content?

    init(_ content: Content) {
        self.content = content
    }

    /// Returns the content, or `nil` if another transfer has taken it.
    func take() -> Content? {
        if case .source(let source) = self.content, source is SourceFile { return self.content }
        defer { self.content = nil }
        return self.content
    }
}
