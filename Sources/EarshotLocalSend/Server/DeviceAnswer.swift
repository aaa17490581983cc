import EarshotCore
import NIOCore
import NIOHTTP1

/// The answer to a request.
struct DeviceAnswer: Sendable, Equatable {
    let status: HTTPResponseStatus
    /// A JSON document; `nil` for an empty body.
    let body: ByteBuffer?
    /// The method that the path takes (RFC 9110 section 10.2.1).
    var allowed: HTTPMethod?

    init(_ status: HTTPResponseStatus, body: ByteBuffer? = nil) {
        self.status = status
        self.body = body
    }

    init(_ refusal: DeviceRefusal) {
        self.init(
            HTTPResponseStatus(statusCode: Int(refusal.rawValue)), body: MessageCoding.encode(ErrorMessage(message: refusal.message)))
    }

    init(_ fault: DeviceRoute.Fault) {
        switch fault {
        case .unknownPath: self.init(.notFound)
        case .method(let allowed):
            self.init(.methodNotAllowed)
            self.allowed = allowed
        case .parameters: self.init(.badRequest, body: MessageCoding.encode(ErrorMessage(message: "Missing parameters")))
        }
    }

    init(_ answer: DeviceOfferAnswer) {
        switch answer {
        case .nothingToSend: self.init(.noContent)
        case .upload(let session, let tokens):
            self.init(.ok, body: MessageCoding.encode(OfferAnswerMessage(session: session, tokens: tokens)))
        }
    }

    /// The head, which says whether the connection is closed after the answer.
    func head(closes: Bool) -> HTTPResponseHead {
        var head = HTTPResponseHead(version: .http1_1, status: self.status)
        if self.body != nil { head.headers.add(name: "content-type", value: "application/json") }
        if self.status != .noContent { head.headers.add(name: "content-length", value: "\(self.body?.readableBytes ?? 0)") }
        if let allowed = self.allowed { head.headers.add(name: "allow", value: allowed.rawValue) }
        if closes { head.headers.add(name: "connection", value: "close") }
        return head
    }
}

extension DeviceRefusal {
    /// The text that the sender's app shows.
    fileprivate var message: String {
        switch self {
        case .invalid: "The request is not valid"
        case .pinRequired: "A PIN is required, or the PIN is wrong"
        case .declined: "The request was declined"
        case .busy: "Another offer is pending"
        case .tooLarge: "The request or the file is too large"
        case .digestMismatch: "The checksum of the file does not match"
        case .tooManyPINs: "Too many wrong PINs"
        case .failed: "The request failed"
        case .noSpace: "There is not enough space for the files"
        }
    }
}
