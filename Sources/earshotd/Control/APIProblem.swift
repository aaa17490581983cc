internal import Earshot
internal import HTTPTypes
internal import Hummingbird
internal import HummingbirdCore
internal import NIOCore
internal import NIOHTTP1

/// A request's failure on its way out, as RFC 9457 has it: what the routes throw and the responder writes.
struct APIProblem: Error, Sendable {
    let status: HTTPResponse.Status
    let code: EarshotError.Code
    /// One lower-case sentence: what failed, on what, and what to do.
    let detail: String
    /// For `ambiguous-peer`: whom the name could mean.
    let candidates: [EarshotError.Candidate]
    /// What the user can do, if the code does not say so.
    let remedy: EarshotError.Remedy?
    /// Header fields that go with the status, such as what the method could have been (405).
    let fields: HTTPFields
    /// Whether the connection ends with this answer: where a body is still coming that is not wanted.
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

    /// A field that is to name peers names none.
    static func namesNobody(_ field: String) -> Self {
        Self(.invalidParameter, "`\(field)` names no peer; give names, ids or their first 8 characters")
    }

    /// A field that is to name a peer or a group is empty.
    static func isEmpty(_ field: String) -> Self {
        Self(.invalidParameter, "`\(field)` is empty; give a name, an id or its first 8 characters")
    }

    /// What was thrown, as a problem; an unforeseen error is a 500 without its insides.
    init(_ error: any Error) {
        switch error {
        case let problem as APIProblem: self = problem
        case let error as EarshotError: self.init(error.code, error.message, candidates: error.candidates, remedy: error.remedy)
        case is NIOTooManyBytesError:
            self.init(.tooLarge, "the request's body is too large", closesConnection: true)
        case let error as HTTPError:
            self.init(.invalidParameter, error.body ?? "the request cannot be answered", status: error.status, closesConnection: true)
        case is HTTPParserError, is IOError, is ChannelError:
            // The client went away, or broke its own framing; whether it reads this is its affair.
            self.init(.invalidParameter, "the request's body broke off or is not what its head announced", closesConnection: true)
        case is CancellationError:
            self.init(.unavailable, "the daemon is stopping; try again once it runs", closesConnection: true)
        default:
            self.init(.unavailable, "an internal error; the daemon's log says more", status: .internalServerError, closesConnection: true)
        }
    }
}

extension EarshotError.Code {
    /// The one table from code to HTTP status (RFC 9110 section 15).
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
    /// 507 (RFC 4918 section 11.5): the registry of HTTP proper does not list it.
    static var insufficientStorage: Self { .init(code: 507, reasonPhrase: "Insufficient Storage") }
}
