/// What was opened for a caller, for its transfers that begin within the call: those of a file have it all, and of anything else the first.
/// Each of the others opens it anew, at its turn.
///
/// What the walk of a large directory has found takes tens of megabytes: held for each of many receivers, they would be gigabytes. A file is one
/// descriptor, read at any place by any number, and the caller may have removed it when the call is over.
final class OpenedContent {
    /// Where the bytes come from.
    enum Content: Sendable {
        case source(any ResourceSource)
        case body(BodySource)
    }

    private var content: Content?

    init(_ content: Content) {
        self.content = content
    }

    /// `nil` where another transfer has it for itself.
    func take() -> Content? {
        if case .source(let source) = self.content, source is SourceFile { return self.content }
        defer { self.content = nil }
        return self.content
    }
}
