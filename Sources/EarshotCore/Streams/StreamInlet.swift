/// How a stream that is received comes to its data connection, and back from it: both sides open one, the sender says from which byte on it
/// uses it, and a receiver that has none, or loses it, calls the bytes back. A value; the core has its actions carried out.
package struct StreamInlet: Sendable, Hashable {
    /// What is to be done.
    package enum Action: Sendable, Hashable {
        case wait
        /// Take the bytes from the data connection.
        case read
        /// Ask the sender to go on over the control connection.
        case callBack
    }

    private enum State: Sendable, Hashable {
        case control
        /// Bytes may be due on it already.
        case opening(isDue: Bool)
        case standing
        case unavailable
        case reading
        case calledBack
        /// On the control connection for good.
        case back
    }

    private var state = State.control

    package init() {}

    /// The sender has asked for one.
    package mutating func asked() {
        switch self.state {
        case .control: self.state = .opening(isDue: false)
        case .opening, .standing, .unavailable, .reading, .calledBack, .back: break
        }
    }

    /// The connection stands, or will not.
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

    /// The sender says that it goes on over the other connection.
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

    /// The data connection brings nothing any more.
    package mutating func lost() -> Action {
        switch self.state {
        case .reading:
            self.state = .calledBack
            return .callBack
        case .control, .opening, .standing, .unavailable, .calledBack, .back: return .wait
        }
    }
}
