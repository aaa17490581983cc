internal import HTTPTypes
internal import NIOCore
internal import NIOHTTPTypes

/// Which of a connection's requests are answered by ``SingleMessageHandler``, and which go on to the routes.
///
/// A message is taken only where every request before it has its answer, and nothing goes on while one is being answered: answers keep the
/// order of their requests (RFC 9112 section 9.3.2).
struct SingleMessageStateMachine {
    /// The largest body that is taken, in bytes; it is collected here.
    static let bodyLimit = 64 * 1024

    private enum State {
        /// Requests go on. So many have no answer yet, and the last one's body is still being read or not.
        case forwarding(unanswered: Int, isReading: Bool)
        /// The body of a message is being read.
        case collecting(HTTPRequest, ByteBuffer)
        /// What arrives has to wait.
        case answering
        /// The connection's last request has gone on; nothing is taken from what may follow it.
        case forwardingTheRest
    }

    private var state = State.forwarding(unanswered: 0, isReading: false)

    var isAnswering: Bool { if case .answering = self.state { true } else { false } }

    /// Whether a route is reading a request, or answering one.
    var isRouteAtWork: Bool {
        switch self.state {
        case .forwarding(let unanswered, let isReading): unanswered > 0 || isReading
        case .forwardingTheRest: true
        case .collecting, .answering: false
        }
    }

    enum PartAction: Equatable {
        case forward
        case keep
        /// A message's request is complete.
        case answer(body: ByteBuffer)
    }

    /// A part of a request, which is not given while ``isAnswering``.
    mutating func received(_ part: HTTPRequestPart) -> PartAction {
        switch (self.state, part) {
        case (.forwarding(0, isReading: false), .head(let head)) where Self.isTaken(head):
            self.state = .collecting(head, ByteBuffer())
            return .keep
        case (.forwarding(let unanswered, _), .head(let head)):
            let isLast = head.headerFields[.connection]?.lowercased() == "close"
            self.state = isLast ? .forwardingTheRest : .forwarding(unanswered: unanswered + 1, isReading: true)
            return .forward
        case (.forwarding(let unanswered, _), .end):
            self.state = .forwarding(unanswered: unanswered, isReading: false)
            return .forward
        case (.collecting(let head, var body), .body(var bytes)):
            if body.readableBytes == 0 { body = bytes } else { body.writeBuffer(&bytes) }
            self.state = .collecting(head, body)
            return .keep
        case (.collecting(_, let body), .end):
            self.state = .answering
            return .answer(body: body)
        case (.forwarding, .body), (.collecting, .head), (.answering, _), (.forwardingTheRest, _):
            return .forward
        }
    }

    /// A response's head is written by a route, which says there whether it is the connection's last.
    mutating func wroteHead(isLast: Bool) {
        guard isLast, case .forwarding = self.state else { return }
        self.state = .forwardingTheRest
    }

    /// A response's end is written by a route.
    mutating func wroteEnd() {
        guard case .forwarding(let unanswered, let isReading) = self.state else { return }
        self.state = .forwarding(unanswered: max(0, unanswered - 1), isReading: isReading)
    }

    /// A message is answered.
    mutating func answered() { self.state = .forwarding(unanswered: 0, isReading: false) }

    /// What has been collected of a request whose rest will not come, or comes wrong: the routes say what that means.
    mutating func giveUp() -> [HTTPRequestPart] {
        guard case .collecting(let head, let body) = self.state else { return [] }
        self.state = .forwarding(unanswered: 1, isReading: true)
        return body.readableBytes > 0 ? [.head(head), .body(body)] : [.head(head)]
    }

    /// Whether a request with this head sends one small message, and asks for nothing that a route would have to do.
    private static func isTaken(_ head: HTTPRequest) -> Bool {
        let fields = head.headerFields
        guard head.method == .post, head.path == "/v1/messages", let length = fields[.contentLength].flatMap({ Int($0) }),
            length <= Self.bodyLimit, RequestRules.isJSON(fields[.contentType])
        else { return false }
        return fields[.connection] == nil && fields[.expect] == nil && fields[.transferEncoding] == nil && RequestRules.fault(head) == nil
    }
}
