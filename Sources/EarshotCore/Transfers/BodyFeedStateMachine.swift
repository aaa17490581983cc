package import NIOCore

/// The hand-over between the reader of a body and its transfer, as a value. At most one piece is buffered between them.
package struct BodyFeedStateMachine {
    private enum State {
        /// The reader is reading; a piece may be buffered.
        case open(ByteBuffer?)
        /// The body has ended, with an error if it ended early. The last piece may still be buffered.
        case ended(ByteBuffer?, EarshotError?)
        /// The transfer is over: the remaining body is discarded.
        case closed
    }

    package enum PutAction: Equatable {
        /// The piece was accepted: keep reading.
        case taken
        /// The buffer is full: try again after the next change.
        case wait
        /// The body is over: stop reading.
        case stop
    }

    package enum TakeAction {
        case piece(ByteBuffer)
        /// The buffer is empty: try again after the next change.
        case wait
        /// The body is complete.
        case end
        case fail(EarshotError)
    }

    private var state = State.open(nil)

    package init() {}

    /// The error for a transfer that keeps reading after its end.
    private static var over: EarshotError { EarshotError(.cancelled, "the transfer has ended") }

    /// Offers a piece that the reader has read.
    package mutating func put(_ piece: ByteBuffer) -> PutAction {
        switch self.state {
        case .open(nil):
            self.state = .open(piece)
            return .taken
        case .open: return .wait
        case .ended, .closed: return .stop
        }
    }

    /// Takes the next piece for the transfer.
    package mutating func take() -> TakeAction {
        switch self.state {
        case .open(let piece?):
            self.state = .open(nil)
            return .piece(piece)
        case .open(nil): return .wait
        case .ended(let piece?, let error):
            self.state = .ended(nil, error)
            return .piece(piece)
        case .ended(nil, let error): return error.map { .fail($0) } ?? .end
        case .closed: return .fail(Self.over)
        }
    }

    /// Ends the body, with an error if reading failed. Only the first call counts.
    package mutating func finish(_ error: EarshotError?) {
        switch self.state {
        case .open(let piece): self.state = .ended(piece, error)
        case .ended, .closed: break
        }
    }

    /// Ends the transfer.
    package mutating func close() { self.state = .closed }

    /// Whether a reader with a piece must wait.
    package var isFull: Bool {
        switch self.state {
        case .open(let piece): piece != nil
        case .ended, .closed: false
        }
    }

    /// Whether a transfer that wants a piece must wait.
    package var isEmpty: Bool {
        switch self.state {
        case .open(let piece): piece == nil
        case .ended, .closed: false
        }
    }
}
