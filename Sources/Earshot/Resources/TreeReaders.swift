/// The readers of a tree in the spool. A tree's files are opened one after another, so removing the tree would interrupt its readers. A
/// single file stays open, so its readers are not affected.
struct TreeReaders {
    /// The object that all readers share.
    final class Hold: Sendable {
        private let onEnd: @Sendable () -> Void

        init(onEnd: @escaping @Sendable () -> Void) { self.onEnd = onEnd }

        deinit { self.onEnd() }
    }

    /// The shared object; `nil` after the last reader has left.
    private(set) weak var hold: Hold?
    /// Whether the tree has to be removed after its last reader.
    var isUnwanted = false

    init(hold: Hold) { self.hold = hold }
}
