internal import Earshot
internal import EarshotClient
internal import EarshotWire
internal import HTTPTypes
internal import NIOCore

extension MessageDraft {
    /// What waits in the outbox is accepted, and no more is known yet (RFC 9110 section 15.3.3).
    var successStatus: HTTPResponse.Status { self.queue ? .accepted : .ok }

    /// What a caller wants to send.
    /// - Throws: `invalid-parameter` for what no node would be asked.
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
        var id: MessageID?
        if let text = request.messageID {
            id = MessageID(text)
            guard id != nil else { throw APIProblem(.invalidParameter, "`message_id` is a UUID such as \(APIContext.exampleID)") }
        }
        var timeout: Duration?
        if let seconds = request.timeoutSeconds {
            guard seconds > 0 else { throw APIProblem(.invalidParameter, "`timeout_seconds` is more than 0") }
            timeout = try Duration.request(seconds, field: "timeout_seconds", atMost: EarshotLimits.messageTimeoutLimit)
        }
        self.init(
            to: recipients, contentType: request.contentType, body: ByteBuffer(bytes: request.body), mode: mode, id: id,
            queue: request.queue ?? false, timeout: timeout)
    }
}
