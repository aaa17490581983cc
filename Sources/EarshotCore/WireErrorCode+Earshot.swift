package import EarshotWire

extension WireErrorCode {
    /// The library's code for a reason on the wire. An unknown code is a violation of the negotiated version.
    package var earshotCode: EarshotError.Code {
        switch self {
        case .versionUnsupported: .versionUnsupported
        case .serviceMismatch: .serviceMismatch
        case .identityMismatch: .identityMismatch
        case .encryptionMismatch: .encryptionMismatch
        case .downgradeDetected: .downgradeDetected
        case .timedOut: .timedOut
        case .busy: .busy
        case .superseded: .cancelled
        case .unsupported: .unsupported
        case .declined: .declined
        case .cancelled: .cancelled
        case .inboxFull: .inboxFull
        case .nameRejected: .nameRejected
        case .tooLarge: .tooLarge
        case .noSpace: .noSpace
        case .digestMismatch: .digestMismatch
        case .sourceChanged: .sourceChanged
        case .unavailable: .unavailable
        case .notConnected: .notConnected
        case .conflict: .conflict
        default: .protocolViolation
        }
    }

    /// The stable name of the code.
    package var name: String {
        self == .superseded ? "superseded" : self.earshotCode.rawValue
    }

    /// Returns the wire code for a failure of this machine.
    package init(_ code: EarshotError.Code) {
        self =
            switch code {
            case .timedOut, .unconfirmed, .notSent: .timedOut
            case .busy: .busy
            case .unsupported: .unsupported
            case .declined, .forbidden: .declined
            case .cancelled: .cancelled
            case .inboxFull: .inboxFull
            case .nameRejected: .nameRejected
            case .tooLarge: .tooLarge
            case .noSpace: .noSpace
            case .digestMismatch: .digestMismatch
            case .sourceChanged: .sourceChanged
            case .notConnected: .notConnected
            case .conflict: .conflict
            case .identityMismatch: .identityMismatch
            case .encryptionMismatch: .encryptionMismatch
            case .downgradeDetected: .downgradeDetected
            case .versionUnsupported: .versionUnsupported
            case .serviceMismatch: .serviceMismatch
            case .protocolViolation, .invalidParameter: .protocolViolation
            case .unavailable, .storage, .unknownPeer, .ambiguousPeer, .unknownGroup, .ambiguousGroup, .notMember, .notFound,
                .invalidSource:
                .unavailable
            }
    }
}
