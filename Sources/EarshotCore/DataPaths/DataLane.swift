package import EarshotWire

/// The state of the attempts to open a data connection for one resource or stream. The side that opened the control connection dials
/// first, because connections in that direction are known to work. If its dial fails, the other side dials. ``DataPaths`` performs the
/// actions.
package struct DataLane: Sendable {
    /// The node's next action.
    package enum Action: Hashable {
        case wait
        /// Give the peer a ticket, and wait for it to dial.
        case issueTicket
        /// Dial for this token.
        case dial(DataToken)
        /// Tell the peer that it could not be dialled, and give it a ticket.
        case swapSides
        /// Tell the peer that it could not be dialled, and continue without a data connection.
        case giveUpAndSay
        /// Continue without a data connection.
        case giveUp
        /// Use the connection, which is open.
        case use
        /// Close the connection: the transfer already has one, or no longer waits for one.
        case drop
    }

    private enum State: Hashable {
        case awaitingTicket(isLast: Bool)
        case dialling(isLast: Bool)
        case awaitingDial(isLast: Bool)
        case connected
        case over
    }

    private var state: State

    /// Whether this side dials, or is about to.
    var isDialling: Bool {
        switch self.state {
        case .dialling: true
        case .awaitingTicket, .awaitingDial, .connected, .over: false
        }
    }

    /// Returns a new lane and its first action. `isInitiator`: whether this side opened the control connection.
    package static func begin(isInitiator: Bool) -> (lane: DataLane, action: Action) {
        isInitiator
            ? (DataLane(state: .awaitingTicket(isLast: false)), .wait)
            : (DataLane(state: .awaitingDial(isLast: false)), .issueTicket)
    }

    /// Handles a ticket from the peer.
    package mutating func receivedTicket(_ token: DataToken) -> Action {
        switch self.state {
        case .awaitingTicket(let isLast):
            self.state = .dialling(isLast: isLast)
            return .dial(token)
        case .dialling, .awaitingDial, .connected, .over: return .wait
        }
    }

    /// Handles a failed dial of this side.
    package mutating func dialFailed() -> Action {
        switch self.state {
        case .dialling(isLast: false):
            self.state = .awaitingDial(isLast: true)
            return .swapSides
        case .dialling(isLast: true):
            self.state = .over
            return .giveUpAndSay
        case .awaitingTicket, .awaitingDial, .connected, .over: return .wait
        }
    }

    /// Handles the peer's report that it could not dial.
    package mutating func receivedUnavailable() -> Action {
        switch self.state {
        case .awaitingDial(isLast: false):
            self.state = .awaitingTicket(isLast: true)
            return .wait
        case .awaitingDial(isLast: true):
            self.state = .over
            return .giveUp
        case .awaitingTicket, .dialling, .connected, .over: return .wait
        }
    }

    /// Handles an open connection, dialled by either side.
    package mutating func attached() -> Action {
        switch self.state {
        case .dialling, .awaitingDial:
            self.state = .connected
            return .use
        case .awaitingTicket, .connected, .over: return .drop
        }
    }

    /// Handles the timeout of the attempt.
    package mutating func expired() -> Action {
        switch self.state {
        case .awaitingTicket, .dialling, .awaitingDial:
            self.state = .over
            return .giveUp
        case .connected, .over: return .wait
        }
    }
}
