internal import NIOCore
internal import NIOHTTP1

/// Decides what passes between the HTTP parser of a client's connection and the routes: one request at a time, and nothing behind the last
/// one. ``ControlConnectionHandler`` executes the actions.
///
/// The routes get a request once the answer to the request before has ended. Until then, later arrivals wait in the handler, so that answers
/// keep the order of their requests (RFC 9112 section 9.3.2).
///
/// A request is the connection's last if its client says so (RFC 9112 sections 9.3 and 9.6): by `Connection: close` in any spelling, by
/// HTTP/1.0, or by asking for another protocol (`Upgrade`, CONNECT; RFC 9110 section 7.8). A request is also the last if its answer says
/// `Connection: close`. The routes and the client find `Connection: close` in one spelling.
struct ControlConnectionStateMachine {
    /// The request that the routes have.
    private struct Request {
        let isHead: Bool
        let isUpgrade: Bool
        var isLast: Bool
        /// Whether the whole request has arrived.
        var isComplete = false
        /// Whether the end of the answer has been written.
        var isAnswered = false

        init(_ head: HTTPRequestHead) {
            self.isHead = head.method == .HEAD
            self.isUpgrade = head.method == .CONNECT || head.headers.contains(name: "upgrade")
            self.isLast = head.version.minor == 0 || self.isUpgrade || !head.isKeepAlive
        }
    }

    private enum State {
        /// Every request is complete and answered.
        case waiting
        case serving(Request)
        /// The last answer has been written.
        case ending(isUpgrade: Bool)
    }

    private var state = State.waiting
    /// Answers that the socket has not taken in full.
    private var unsentAnswers = 0

    /// Whether arrivals wait for the answer to the request before.
    var holdsArrivals: Bool {
        switch self.state {
        case .serving(let request): request.isComplete && !request.isAnswered
        case .waiting, .ending: false
        }
    }

    /// Whether the socket is read. The parser would keep all bytes behind a request for another protocol, without a limit.
    var readsSocket: Bool {
        switch self.state {
        case .waiting: true
        case .serving(let request): !(request.isUpgrade && request.isComplete)
        case .ending(let isUpgrade): !isUpgrade
        }
    }

    // MARK: Requests

    enum PartAction: Equatable {
        /// Pass the head of a request on. The connection is not idle any more.
        case begin(HTTPRequestHead)
        case forward
        case discard
    }

    /// The parser delivers a part of a request, while arrivals are not held.
    mutating func received(_ part: HTTPServerRequestPart) -> PartAction {
        switch (self.state, part) {
        case (.waiting, .head(var head)):
            let request = Request(head)
            self.state = .serving(request)
            if request.isLast { head.headers.replaceOrAdd(name: "connection", value: "close") }
            return .begin(head)
        case (.serving, .body): return .forward
        case (.serving(var request), .end):
            request.isComplete = true
            self.advance(request)
            return .forward
        case (.waiting, .body), (.waiting, .end), (.serving, .head), (.ending, _): return .discard
        }
    }

    enum ErrorAction: Equatable {
        /// Pass the error on to the reader of the request's body.
        case forward
        /// Answer the error, and close the connection.
        case refuse
        case discard
    }

    /// The parser fails, while arrivals are not held.
    mutating func parserFailed() -> ErrorAction {
        switch self.state {
        case .waiting:
            self.state = .ending(isUpgrade: false)
            return .refuse
        case .serving: return .forward
        case .ending: return .discard
        }
    }

    // MARK: Answers

    /// A route writes a part of an answer. Returns the part to write in its place.
    mutating func answered(_ part: HTTPServerResponsePart) -> HTTPServerResponsePart {
        if case .end = part { self.unsentAnswers += 1 }
        // Hummingbird answers an error in the rest of a body a second time.
        guard !self.hasLastAnswer else { return Self.nothing }
        guard case .serving(var request) = self.state, !request.isAnswered else { return part }
        switch part {
        case .head(var head):
            // An informational head comes before the answer (RFC 9110 section 15.2).
            guard head.status.code >= 200 else { return part }
            request.isLast = request.isLast || !head.isKeepAlive
            self.state = .serving(request)
            guard request.isLast else { return part }
            head.headers.replaceOrAdd(name: "connection", value: "close")
            return .head(head)
        case .body: return part
        case .end:
            request.isAnswered = true
            self.advance(request)
            // The answer to a HEAD has no body (RFC 9112 section 6.3). The encoder, which does not know the request, would write the last chunk
            // of an empty body if the length is unknown, and the client would take it for the beginning of the next answer.
            return request.isHead ? Self.nothing : part
        }
    }

    /// No bytes, which are written when everything before them is.
    private static let nothing = HTTPServerResponsePart.body(.byteBuffer(ByteBuffer()))

    /// Whether the end of the last answer has been written.
    private var hasLastAnswer: Bool {
        switch self.state {
        case .waiting: false
        case .serving(let request): request.isLast && request.isAnswered
        case .ending: true
        }
    }

    enum SentAction: Equatable {
        /// The connection is idle from now on.
        case startIdleTimer
        case wait
    }

    /// The socket has taken the end of an answer. An answer that its client reads slowly keeps the connection from being idle.
    mutating func answerSent() -> SentAction {
        self.unsentAnswers -= 1
        guard self.unsentAnswers <= 0 else { return .wait }
        switch self.state {
        case .waiting, .ending: return .startIdleTimer
        case .serving(let request): return request.isAnswered ? .startIdleTimer : .wait
        }
    }

    /// Takes the request's new state, and ends the request if it is complete and answered.
    private mutating func advance(_ request: Request) {
        if !request.isComplete || !request.isAnswered {
            self.state = .serving(request)
        } else if request.isLast {
            self.state = .ending(isUpgrade: request.isUpgrade)
        } else {
            self.state = .waiting
        }
    }
}
