internal import EarshotTree
internal import EarshotWire

extension Refusal {
    /// Creates the refusal that tells the other side about a failure here.
    init(_ error: EarshotError) {
        switch error.underlying {
        case let tree as TreeError: self.init(error.code, tree.told)
        // A limit of this node, which a sender may learn: no system call has failed.
        case nil where error.code == .noSpace: self.init(error.code, error.message)
        default: self.init(toPeer: error)
        }
    }
}
