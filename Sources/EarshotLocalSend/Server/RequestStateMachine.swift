/// The order of requests and answers on one connection: one request at a time, and nothing after the last answer. ``RequestHandler``
/// performs the actions.
///
/// No known device sends a request before the answer to the one before (RFC 9112 section 9.3.2), so such a connection is closed. An answer
/// that comes before its request's end is the last one: the rest of the request would have to be read first.
struct RequestStateMachine {
    private enum State {
        case waiting
        /// A request is served. `isComplete`: its body has arrived whole.
        case serving(isComplete: Bool, isLast: Bool)
        /// The last answer is written. Input is read and dropped for a while, so that the sender can read the answer.
        case ending
        case closed
    }

    private var state = State.waiting

    /// Whether a request is served.
    var isServing: Bool {
        switch self.state {
        case .serving: true
        case .waiting, .ending, .closed: false
        }
    }

    enum HeadAction: Equatable {
        /// Serve the request.
        case begin
        case drop
        case close
    }

    /// A request's head arrives. `isLast`: the connection cannot be used after it.
    mutating func receivedHead(isLast: Bool) -> HeadAction {
        switch self.state {
        case .waiting:
            self.state = .serving(isComplete: false, isLast: isLast)
            return .begin
        case .serving:
            self.state = .closed
            return .close
        case .ending, .closed: return .drop
        }
    }

    enum PartAction: Equatable {
        /// Pass the bytes, or the end, on to the body's reader.
        case pass
        case drop
    }

    /// Bytes of a body arrive.
    mutating func receivedBody() -> PartAction {
        switch self.state {
        case .serving(isComplete: false, _): .pass
        case .serving, .waiting, .ending, .closed: .drop
        }
    }

    /// The end of a request arrives.
    mutating func receivedEnd() -> PartAction {
        switch self.state {
        case .serving(isComplete: false, let isLast):
            self.state = .serving(isComplete: true, isLast: isLast)
            return .pass
        case .serving, .waiting, .ending, .closed: return .drop
        }
    }

    enum AnswerAction: Equatable {
        /// Write the answer. `closes`: it is the last one.
        case write(closes: Bool)
        case drop
    }

    /// The answer to the current request is known.
    mutating func answered() -> AnswerAction {
        switch self.state {
        case .serving(let isComplete, let isLast):
            let closes = isLast || !isComplete
            self.state = closes ? .ending : .waiting
            return .write(closes: closes)
        case .waiting, .ending, .closed: return .drop
        }
    }

    enum FailureAction: Equatable {
        /// Answer 400, and close.
        case refuse
        case close
        case drop
    }

    /// The parser finds something else than HTTP.
    mutating func parserFailed() -> FailureAction {
        switch self.state {
        case .waiting:
            self.state = .ending
            return .refuse
        case .serving:
            self.state = .closed
            return .close
        case .ending, .closed: return .drop
        }
    }

    /// The connection has ended.
    mutating func ended() {
        self.state = .closed
    }
}
