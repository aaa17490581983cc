/// The move of a received stream to its data connection, and back. Both sides open the connection, and the sender says from which byte on
/// it uses it. A receiver that has none, or loses it, calls the bytes back. A value; the core has its actions carried out.
package struct StreamInlet: Sendable, Hashable {
    /// The next action.
    package enum Action: Sendable, Hashable {
        case wait
        /// Read the bytes from the data connection.
        case read
        /// Ask the sender to continue over the control connection.
        case callBack
    }

    private enum State: Sendable, Hashable {
        case control
        /// Opens the data connection; the sender may already have switched to it.
        case opening(isDue: Bool)
        case standing
        case unavailable
        case reading
        case calledBack
        /// The stream stays on the control connection for good.
        case back
    }

    private var state = State.control

    package init() {}

    /// Records that the sender has asked for a data connection.
    package mutating func asked() {
        switch self.state {
        case .control: self.state = .opening(isDue: false)
        case .opening, .standing, .unavailable, .reading, .calledBack, .back: break
        }
    }

    /// Records whether the data connection was established.
    package mutating func opened(_ stands: Bool) -> Action {
        switch self.state {
        case .opening(isDue: false):
            self.state = stands ? .standing : .unavailable
            return .wait
        case .opening(isDue: true):
            self.state = stands ? .reading : .calledBack
            return stands ? .read : .callBack
        case .control, .standing, .unavailable, .reading, .calledBack, .back: return .wait
        }
    }

    /// Records that the sender continues over the other connection.
    package mutating func rerouted() -> Action {
        switch self.state {
        case .opening:
            self.state = .opening(isDue: true)
            return .wait
        case .standing:
            self.state = .reading
            return .read
        case .unavailable:
            self.state = .calledBack
            return .callBack
        case .calledBack:
            self.state = .back
            return .wait
        case .control, .reading, .back: return .wait
        }
    }

    /// Records that the data connection has ended.
    package mutating func lost() -> Action {
        switch self.state {
        case .reading:
            self.state = .calledBack
            return .callBack
        case .control, .opening, .standing, .unavailable, .calledBack, .back: return .wait
        }
    }
}
