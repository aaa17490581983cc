/// What was opened for a caller, for the first of its transfers that begins: each of the others opens it anew, at its turn.
///
/// What the walk of a large directory has found takes tens of megabytes: held for each of many receivers, they would be gigabytes.
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

    /// Once: `nil` where another transfer has it.
    func take() -> Content? {
        defer { self.content = nil }
        return self.content
    }
}
