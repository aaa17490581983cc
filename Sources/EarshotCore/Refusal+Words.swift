package import EarshotWire

extension Refusal {
    /// Creates a refusal for the other side. A failure of this machine's files has a message for local users, which may quote paths and the
    /// kernel's words. The other side gets only the meaning. Messages of all other codes are passed on unchanged.
    package init(toPeer error: EarshotError) {
        self.init(error.code, Self.words(of: error.code) ?? error.message)
    }

    /// Returns the words for failures of this machine's files; `nil` for all others.
    private static func words(of code: EarshotError.Code) -> String? {
        switch code {
        case .invalidSource: "its sender cannot read it any more"
        case .sourceChanged: "it changed while it was sent"
        case .storage: "a disk failed"
        case .noSpace: "there is no space for it"
        case .notConnected, .invalidParameter, .unsupported, .timedOut, .cancelled, .unavailable, .unknownPeer, .ambiguousPeer, .notFound,
            .conflict, .forbidden, .unknownGroup, .ambiguousGroup, .notMember, .declined, .busy, .identityMismatch, .encryptionMismatch,
            .downgradeDetected, .versionUnsupported, .serviceMismatch, .protocolViolation, .unconfirmed, .notSent, .inboxFull, .tooLarge,
            .nameRejected, .digestMismatch:
            nil
        }
    }

    /// Creates a refusal, with the text truncated to fit into a frame.
    package init(_ code: EarshotError.Code, _ text: String) {
        var words = text.unicodeScalars
        while String(words).utf8.count > WireLimits.explanation { words.removeLast() }
        self.init(code: WireErrorCode(code), explanation: String(words))
    }
}
