import EarshotClient

/// The process's exit status: "Exit status" of earshot(1), after sysexits.h.
enum ExitStatus: Int32, Sendable, CaseIterable {
    case done = 0
    case failure = 1
    case usage = 64
    /// Ambiguous or bad data.
    case data = 65
    case noInput = 66
    case unknownPeer = 68
    case noDaemon = 69
    case cannotCreate = 73
    case io = 74
    /// Timed out or unconfirmed: try again.
    case temporary = 75
    case protocolError = 76
    /// Declined, or not permitted.
    case denied = 77
    /// The settings files of the daemon are invalid.
    case configuration = 78
    /// Not sent: the peer never received it, and it is safe to send it again.
    case notSent = 79
    /// The command of `earshot on` cannot be run; like 127, as of env(1).
    case commandNotRun = 126
    case commandNotFound = 127

    /// The only mapping of the API's codes; `nil` is a failure without a code.
    init(code: Tolerant<ControlAPI.ErrorCode>?) {
        self = code?.known.map(Self.init) ?? .failure
    }

    private init(_ code: ControlAPI.ErrorCode) {
        self =
            switch code {
            case .invalidParameter, .unsupported: .usage
            case .ambiguousPeer, .ambiguousGroup, .notFound, .nameRejected, .tooLarge: .data
            case .unknownPeer, .unknownGroup, .notMember: .unknownPeer
            case .invalidSource: .noInput
            case .storage, .noSpace, .sourceChanged: .io
            case .timedOut, .unconfirmed, .unavailable, .busy, .inboxFull: .temporary
            case .notSent: .notSent
            case .identityMismatch, .encryptionMismatch, .downgradeDetected, .versionUnsupported, .serviceMismatch, .protocolViolation,
                .digestMismatch:
                .protocolError
            case .declined, .forbidden, .notConnected: .denied
            case .cancelled, .conflict: .failure
            }
    }

    /// The code in `--json` output for a failure without a code of the API.
    var code: String {
        switch self {
        case .done: "done"
        case .failure: "failed"
        case .usage: "usage"
        case .data: "bad-data"
        case .noInput: "no-input"
        case .unknownPeer: "unknown-peer"
        case .noDaemon: "no-daemon"
        case .cannotCreate: "cannot-create"
        case .io: "io"
        case .temporary: "timed-out"
        case .protocolError: "protocol-violation"
        case .denied: "forbidden"
        case .configuration: "bad-settings"
        case .notSent: "not-sent"
        case .commandNotRun: "command-not-run"
        case .commandNotFound: "command-not-found"
        }
    }

    /// The worst of several statuses: first failures that a retry will not fix, then failures after which the peer may have the message or
    /// file, then `notSent`.
    static func worst(_ all: some Sequence<ExitStatus>) -> ExitStatus {
        let failed = all.filter { $0 != .done }
        return failed.first { $0 != .temporary && $0 != .notSent } ?? failed.first { $0 == .temporary } ?? failed.first ?? .done
    }
}
