internal import EarshotSafety
internal import EarshotTree
internal import EarshotWire

extension Refusal {
    /// What the other side is told of a failure of ours, cut to what a frame takes: a message may quote a long path.
    init(_ error: EarshotError) {
        // Where this side keeps its files is not the other side's affair.
        let text = (error.underlying as? FileError)?.reason ?? (error.underlying as? TreeError)?.told ?? error.message
        var words = text.unicodeScalars
        while String(words).utf8.count > WireLimits.explanation { words.removeLast() }
        self.init(code: WireErrorCode(error.code), explanation: String(words))
    }
}
