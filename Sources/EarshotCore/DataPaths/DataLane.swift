package import EarshotWire

/// How the two sides of a session come to a data connection for one transfer: first the side dials that opened the control connection,
/// whose direction is known to work, then the other one. ``DataPaths`` performs its actions.
package struct DataLane: Sendable {
    /// What the node has to do.
    package enum Action: Hashable {
        case wait
        /// Give the peer a ticket, and wait for it to dial.
        case issueTicket
        /// Dial for this token.
        case dial(DataToken)
        /// Tell the peer that it could not be dialled, and give it a ticket.
        case swapSides
        /// Tell the peer that it could not be dialled, and do without.
        case giveUpAndSay
        /// Do without.
        case giveUp
        /// The connection stands.
        case use
        /// Close the connection: there is one, or it comes too late.
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

    /// Whether this side is to dial, or dials.
    var isDialling: Bool {
        switch self.state {
        case .dialling: true
        case .awaitingTicket, .awaitingDial, .connected, .over: false
        }
    }

    /// `isInitiator`: whether this side opened the control connection.
    package static func begin(isInitiator: Bool) -> (lane: DataLane, action: Action) {
        isInitiator
            ? (DataLane(state: .awaitingTicket(isLast: false)), .wait)
            : (DataLane(state: .awaitingDial(isLast: false)), .issueTicket)
    }

    /// The peer has given a ticket.
    package mutating func receivedTicket(_ token: DataToken) -> Action {
        switch self.state {
        case .awaitingTicket(let isLast):
            self.state = .dialling(isLast: isLast)
            return .dial(token)
        case .dialling, .awaitingDial, .connected, .over: return .wait
        }
    }

    /// The dial has failed.
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

    /// The peer says that it could not dial.
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

    /// A connection stands, dialled by either side.
    package mutating func attached() -> Action {
        switch self.state {
        case .dialling, .awaitingDial:
            self.state = .connected
            return .use
        case .awaitingTicket, .connected, .over: return .drop
        }
    }

    /// Nothing has come of it in time.
    package mutating func expired() -> Action {
        switch self.state {
        case .awaitingTicket, .dialling, .awaitingDial:
            self.state = .over
            return .giveUp
        case .connected, .over: return .wait
        }
    }
}
