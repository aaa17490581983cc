internal import EarshotTree
internal import EarshotWire

extension Refusal {
    /// The words in which the other side hears of a failure here.
    init(_ error: EarshotError) {
        switch error.underlying {
        case let tree as TreeError: self.init(error.code, tree.told)
        // A limit of ours, which a sender may know: no call to the kernel has failed.
        case nil where error.code == .noSpace: self.init(error.code, error.message)
        default: self.init(toPeer: error)
        }
    }
}
