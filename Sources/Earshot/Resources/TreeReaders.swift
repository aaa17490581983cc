/// The readers of a tree in the spool. A tree's files are opened one after the other, so that removing it would cut its readers short, as it does not
/// cut short who reads a single file, which is open.
struct TreeReaders {
    /// The object that each of them holds.
    final class Hold: Sendable {
        private let onEnd: @Sendable () -> Void

        init(onEnd: @escaping @Sendable () -> Void) { self.onEnd = onEnd }

        deinit { self.onEnd() }
    }

    /// `nil` once the last one has left.
    private(set) weak var hold: Hold?
    /// Whether the tree is to go with them.
    var isUnwanted = false

    init(hold: Hold) { self.hold = hold }
}
