internal import Earshot
internal import EarshotClient
internal import EarshotWire
internal import HTTPTypes
internal import NIOCore

extension MessageDraft {
    /// The status of a successful answer: 202 for a message in the outbox, whose outcome is not known yet (RFC 9110 section 15.3.3).
    var successStatus: HTTPResponse.Status { self.queue ? .accepted : .ok }

    /// Creates the draft that a request describes.
    /// - Throws: `invalid-parameter` if a field has a value that no node accepts.
    init(_ request: ControlAPI.MessageRequest) throws(APIProblem) {
        let recipients: Message.Recipients
        switch request.to {
        case .all: recipients = .all
        case .peers(let peers):
            guard !peers.isEmpty, !peers.contains("") else { throw APIProblem.namesNobody("to") }
            recipients = .peers(peers)
        case .group(let group):
            guard !group.isEmpty else { throw APIProblem.isEmpty("group") }
            recipients = .group(group)
        }
        let mode: Message.Mode
        switch request.mode.known {
        case .reliable: mode = .reliable
        case .unreliable: mode = .unreliable
        case nil: throw APIProblem(.invalidParameter, "`mode` is reliable or unreliable")
        }
        var timeout: Duration?
        if let seconds = request.timeoutSeconds {
            guard seconds > 0 else { throw APIProblem(.invalidParameter, "`timeout_seconds` is more than 0") }
            timeout = try Duration.request(seconds, field: "timeout_seconds", atMost: WireLimits.messageTimeout)
        }
        self.init(
            to: recipients, contentType: request.contentType, body: ByteBuffer(bytes: request.body), mode: mode, id: request.messageID,
            queue: request.queue ?? false, timeout: timeout, inReplyTo: request.inReplyTo)
        self.pin = try DevicePIN.checked(request.pin)
    }
}

extension MessageRequestReader {
    /// Returns the message that a body describes, for the message lane and for the route: both refuse a body in the same words.
    mutating func draft(_ body: ByteBuffer) throws(APIProblem) -> MessageDraft {
        let request: ControlAPI.MessageRequest
        do {
            request = try self.read(body)
        } catch {
            throw APIProblem(.invalidParameter, error.description)
        }
        return try MessageDraft(request)
    }
}
