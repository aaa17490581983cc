internal import Earshot
internal import HTTPTypes
internal import Hummingbird
internal import HummingbirdCore
internal import NIOCore
internal import NIOHTTP1

/// A failed request's problem details (RFC 9457). Routes throw it, and the responder writes it.
struct APIProblem: Error, Sendable {
    let status: HTTPResponse.Status
    let code: EarshotError.Code
    /// One lower-case sentence: what failed, on what, and what to do.
    let detail: String
    /// For `ambiguous-peer`: the peers that the name matches.
    let candidates: [EarshotError.Candidate]
    /// The way for the user to fix the failure, if the code does not imply it.
    let remedy: EarshotError.Remedy?
    /// Header fields that belong to the status, such as the allowed methods (405).
    let fields: HTTPFields
    /// Whether the connection closes after this answer, because the rest of the request's body is unwanted.
    var closesConnection = false

    init(
        _ code: EarshotError.Code, _ detail: String, status: HTTPResponse.Status? = nil, candidates: [EarshotError.Candidate] = [],
        remedy: EarshotError.Remedy? = nil, fields: HTTPFields = [:], closesConnection: Bool = false
    ) {
        self.code = code
        self.detail = detail
        self.status = status ?? code.status
        self.candidates = candidates
        self.remedy = remedy
        self.fields = fields
        self.closesConnection = closesConnection
    }

    /// The problem of a field that must name peers and names none.
    static func namesNobody(_ field: String) -> Self {
        Self(.invalidParameter, "`\(field)` names no peer; give names, ids or their first 8 characters")
    }

    /// The problem of an empty field that must name a peer or a group.
    static func isEmpty(_ field: String) -> Self {
        Self(.invalidParameter, "`\(field)` is empty; give a name, an id or its first 8 characters")
    }

    /// Converts a thrown error. An unexpected error becomes a 500 without internal details.
    init(_ error: any Error) {
        switch error {
        case let problem as APIProblem: self = problem
        case let error as EarshotError: self.init(error.code, error.message, candidates: error.candidates, remedy: error.remedy)
        case is NIOTooManyBytesError:
            self.init(.tooLarge, "the request's body is too large", closesConnection: true)
        case let error as HTTPError:
            self.init(.invalidParameter, error.body ?? "the request cannot be answered", status: error.status, closesConnection: true)
        case is HTTPParserError, is IOError, is ChannelError:
            // The client disconnected, or violated its own framing. It may never read this answer.
            self.init(.invalidParameter, "the request's body broke off or is not what its head announced", closesConnection: true)
        case is CancellationError:
            self.init(.unavailable, "the daemon is stopping; try again once it runs", closesConnection: true)
        default:
            self.init(.unavailable, "an internal error; the daemon's log says more", status: .internalServerError, closesConnection: true)
        }
    }
}

extension EarshotError.Code {
    /// The HTTP status of the code (RFC 9110 section 15). No other place maps codes to statuses.
    var status: HTTPResponse.Status {
        switch self {
        case .invalidParameter: .badRequest
        case .forbidden, .declined: .forbidden
        case .unknownPeer, .unknownGroup, .notFound: .notFound
        case .notConnected, .notMember, .cancelled, .ambiguousPeer, .ambiguousGroup, .conflict, .busy, .sourceChanged: .conflict
        case .tooLarge: .contentTooLarge
        case .nameRejected, .invalidSource: .unprocessableContent
        case .unsupported: .notImplemented
        case .identityMismatch, .encryptionMismatch, .downgradeDetected, .versionUnsupported, .serviceMismatch, .protocolViolation,
            .digestMismatch:
            .badGateway
        case .unavailable: .serviceUnavailable
        case .timedOut, .unconfirmed, .notSent: .gatewayTimeout
        case .inboxFull, .noSpace, .storage: .insufficientStorage
        }
    }
}

extension HTTPResponse.Status {
    /// 507 (RFC 4918 section 11.5), which RFC 9110 does not define.
    static var insufficientStorage: Self { .init(code: 507, reasonPhrase: "Insufficient Storage") }
}
