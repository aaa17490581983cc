package import NIOCore

/// Whose turn it is between a body's reader and its transfer, as a value: at most one piece lies between them.
package struct BodyFeedStateMachine {
    private enum State {
        /// The reader reads; a piece may lie here.
        case open(ByteBuffer?)
        /// The body has ended, where there is an error before its end; the last piece may still lie here.
        case ended(ByteBuffer?, EarshotError?)
        /// The transfer is over: what is left is not wanted any more.
        case closed
    }

    package enum PutAction: Equatable {
        /// Read on.
        case taken
        /// Try again once something has changed.
        case wait
        /// Read no more.
        case stop
    }

    package enum TakeAction {
        case piece(ByteBuffer)
        /// Try again once something has changed.
        case wait
        /// That was all.
        case end
        case fail(EarshotError)
    }

    private var state = State.open(nil)

    package init() {}

    /// What a transfer hears that goes on reading although it is over.
    private static var over: EarshotError { EarshotError(.cancelled, "the transfer has ended") }

    /// The reader has a piece.
    package mutating func put(_ piece: ByteBuffer) -> PutAction {
        switch self.state {
        case .open(nil):
            self.state = .open(piece)
            return .taken
        case .open: return .wait
        case .ended, .closed: return .stop
        }
    }

    /// The transfer wants a piece.
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

    /// The reader reads no more: the body has ended, or failed. The first word counts.
    package mutating func finish(_ error: EarshotError?) {
        switch self.state {
        case .open(let piece): self.state = .ended(piece, error)
        case .ended, .closed: break
        }
    }

    /// The transfer is over.
    package mutating func close() { self.state = .closed }

    /// Whether a reader with a piece has to wait.
    package var isFull: Bool {
        switch self.state {
        case .open(let piece): piece != nil
        case .ended, .closed: false
        }
    }

    /// Whether a transfer that wants a piece has to wait.
    package var isEmpty: Bool {
        switch self.state {
        case .open(let piece): piece == nil
        case .ended, .closed: false
        }
    }
}
