package import EarshotWire

extension Refusal {
    /// With as much of a text as a frame takes.
    package init(_ code: EarshotError.Code, _ text: String) {
        var words = text.unicodeScalars
        while String(words).utf8.count > WireLimits.explanation { words.removeLast() }
        self.init(code: WireErrorCode(code), explanation: String(words))
    }
}
