/// How an outgoing resource comes to its end on one connection: offered, compared where the receiver holds its beginning, sent within
/// the receiver's window or over data connections, digested. A value; ``NodeCore`` performs its actions.
struct UploadStateMachine: Sendable, Hashable {
    /// What the node has to do.
    enum Action: Sendable, Hashable {
        case wait
        /// Digest the first bytes of the source.
        case compare(UInt64)
        /// Tell the receiver from where this side goes on.
        case goOn(from: UInt64)
        /// Have these sent over the control connection.
        case send(from: UInt64, upTo: UInt64)
        /// Come to a data connection; one that there was is closed.
        case openData
        /// Have everything from there on sent over it.
        case sendOverData(from: UInt64)
        /// All was sent: digest the whole.
        case digest
        case complete
    }

    /// What goes over the control connection.
    private struct Window: Sendable, Hashable {
        /// Up to where the receiver takes it.
        var limit: UInt64
        /// Up to where it is to be sent, by what was asked of the mover last.
        var asked: UInt64
        /// The ends of the mover's orders that are not done, at most two: the next one is there before the first is done, so that the mover
        /// never stands still.
        var orders: [UInt64] = []

        /// The next order, if there is room for one.
        mutating func order(_ size: UInt64) -> Action {
            let end = min(self.limit, size)
            guard self.orders.count < 2, self.asked < end else { return .wait }
            defer { self.asked = end }
            self.orders.append(end)
            return .send(from: self.asked, upTo: end)
        }
    }

    private enum State: Sendable, Hashable {
        case opening
        case offered(isChanged: Bool)
        case comparing(UInt64, [UInt8])
        /// The receiver knows from where this side goes on.
        case compared
        case sending(Window)
        /// From there on over a data connection, once it stands. The receiver says how far it is.
        case elsewhere(UInt64)
        case digesting
        case ended
    }

    private var state = State.opening

    /// Whether the receiver may say from where it takes it, for the first time.
    var awaitsAcceptance: Bool {
        switch self.state {
        case .offered, .compared: true
        case .opening, .comparing, .sending, .elsewhere, .digesting, .ended: false
        }
    }

    /// The source is open, and is what it was when it was last looked at, or is not; it is offered now.
    mutating func opened(isChanged: Bool) { self.state = .offered(isChanged: isChanged) }

    /// The receiver holds so many bytes from an earlier connection, of this digest.
    mutating func held(_ count: UInt64, _ digest: [UInt8]) -> Action {
        guard case .offered(let isChanged) = self.state else { return .wait }
        guard !isChanged else {
            self.state = .compared
            return .goOn(from: 0)
        }
        self.state = .comparing(count, digest)
        return .compare(count)
    }

    /// The digest of the same bytes of the source; `nil` where they cannot be read again.
    mutating func compared(_ own: [UInt8]?) -> Action {
        guard case .comparing(let count, let digest) = self.state else { return .wait }
        self.state = .compared
        return .goOn(from: own == digest ? count : 0)
    }

    /// The receiver takes what is between these; with no room between them, over a data connection.
    mutating func accepted(from offset: UInt64, upTo limit: UInt64, of size: UInt64) -> Action {
        switch self.state {
        case .offered, .compared, .elsewhere:
            guard offset < size else {
                self.state = .digesting
                return .digest
            }
            guard limit > offset else {
                self.state = .elsewhere(offset)
                return .openData
            }
            var window = Window(limit: limit, asked: offset)
            let action = window.order(size)
            self.state = .sending(window)
            return action
        case .sending(var window):
            window.limit = max(window.limit, limit)
            let action = window.order(size)
            self.state = .sending(window)
            return action
        case .opening, .comparing, .digesting, .ended: return .wait
        }
    }

    /// So much has been handed to the control connection.
    mutating func sent(to offset: UInt64, of size: UInt64) -> Action {
        guard case .sending(var window) = self.state else { return .wait }
        if let end = window.orders.first, offset >= end { window.orders.removeFirst() }
        guard offset < size else {
            self.state = .digesting
            return .digest
        }
        let action = window.order(size)
        self.state = .sending(window)
        return action
    }

    /// A data connection stands, or there will be none: then the receiver says how to go on.
    mutating func dataOpened(_ stands: Bool) -> Action {
        guard case .elsewhere(let offset) = self.state, stands else { return .wait }
        return .sendOverData(from: offset)
    }

    /// The whole is digested, and the receiver hears that it has everything.
    mutating func digested() -> Bool {
        guard self.state == .digesting else { return false }
        self.state = .ended
        return true
    }

    /// The receiver has published it, or had it already.
    mutating func done() -> Action {
        switch self.state {
        case .offered, .ended: .complete
        case .opening, .comparing, .compared, .sending, .elsewhere, .digesting: .wait
        }
    }
}
