internal import EarshotSafety
internal import EarshotTree
internal import EarshotWire

extension Refusal {
    /// What the other side is told of a failure of ours, where a message may quote a long path.
    init(_ error: EarshotError) {
        // Where this side keeps its files is not the other side's affair.
        let text = (error.underlying as? FileError)?.reason ?? (error.underlying as? TreeError)?.told ?? error.message
        self.init(error.code, text)
    }
}
