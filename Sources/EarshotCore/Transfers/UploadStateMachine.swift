/// The course of an outgoing resource on one connection: offered, compared if the receiver holds its beginning, sent within the receiver's
/// window or over data connections, then digested. A value; ``NodeCore`` performs its actions.
struct UploadStateMachine: Sendable, Hashable {
    /// The next action of the node.
    enum Action: Sendable, Hashable {
        case wait
        /// Digest the first bytes of the source.
        case compare(UInt64)
        /// Tell the receiver the offset from which this side continues.
        case goOn(from: UInt64)
        /// Send these bytes over the control connection.
        case send(from: UInt64, upTo: UInt64)
        /// Establish a data connection; an existing one is closed.
        case openData
        /// Send everything from this offset over the data connection.
        case sendOverData(from: UInt64)
        /// Everything is sent: digest the whole.
        case digest
        case complete
    }

    /// The state of sending over the control connection.
    private struct Window: Sendable, Hashable {
        /// The offset up to which the receiver accepts bytes.
        var limit: UInt64
        /// The offset up to which the mover has been told to send.
        var asked: UInt64
        /// The ends of the mover's unfinished orders, at most two. The second is given before the first is done, so that the mover never
        /// idles.
        var orders: [UInt64] = []

        /// Returns the next order, if there is room for one.
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
        /// The receiver knows the offset from which this side continues.
        case compared
        case sending(Window)
        /// Sends over a data connection from this offset, once one is established. The receiver reports its progress.
        case elsewhere(UInt64)
        case digesting
        case ended
    }

    private var state = State.opening

    /// Whether the receiver's first acceptance is pending.
    var awaitsAcceptance: Bool {
        switch self.state {
        case .offered, .compared: true
        case .opening, .comparing, .sending, .elsewhere, .digesting, .ended: false
        }
    }

    /// Records that the source is open, and whether it has changed since it was last opened. It is offered now.
    mutating func opened(isChanged: Bool) { self.state = .offered(isChanged: isChanged) }

    /// Records how many bytes the receiver holds from an earlier connection, and their digest.
    mutating func held(_ count: UInt64, _ digest: [UInt8]) -> Action {
        guard case .offered(let isChanged) = self.state else { return .wait }
        guard !isChanged else {
            self.state = .compared
            return .goOn(from: 0)
        }
        self.state = .comparing(count, digest)
        return .compare(count)
    }

    /// Records the digest of the same bytes of the source; `nil` if they cannot be read again.
    mutating func compared(_ own: [UInt8]?) -> Action {
        guard case .comparing(let count, let digest) = self.state else { return .wait }
        self.state = .compared
        return .goOn(from: own == digest ? count : 0)
    }

    /// Records the range that the receiver accepts. An empty range asks for a data connection.
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

    /// Records how many bytes have been handed to the control connection.
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

    /// Records whether a data connection was established. If not, the receiver says how to continue.
    mutating func dataOpened(_ stands: Bool) -> Action {
        guard case .elsewhere(let offset) = self.state, stands else { return .wait }
        return .sendOverData(from: offset)
    }

    /// Records the digest of the whole. Returns whether the receiver is to be told that everything was sent.
    mutating func digested() -> Bool {
        guard self.state == .digesting else { return false }
        self.state = .ended
        return true
    }

    /// Records that the receiver has published the resource, or had it already.
    mutating func done() -> Action {
        switch self.state {
        case .offered, .ended: .complete
        case .opening, .comparing, .compared, .sending, .elsewhere, .digesting: .wait
        }
    }
}
