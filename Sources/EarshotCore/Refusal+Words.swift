package import EarshotWire

extension Refusal {
    /// Of a failure whose message is for people at this machine, where it may quote paths and the kernel's words: the other side is told
    /// what the failure means to it, and nothing of this machine's files. Messages of other codes are told as they are.
    package init(toPeer error: EarshotError) {
        self.init(error.code, Self.words(of: error.code) ?? error.message)
    }

    /// What the other side is told of failures that concern this machine's files; `nil` for all others.
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

    /// With as much of a text as a frame takes.
    package init(_ code: EarshotError.Code, _ text: String) {
        var words = text.unicodeScalars
        while String(words).utf8.count > WireLimits.explanation { words.removeLast() }
        self.init(code: WireErrorCode(code), explanation: String(words))
    }
}
