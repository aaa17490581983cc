package import EarshotWire

/// The digest of a whole resource, as its sender states it.
package struct ResourceDigest: Sendable, Hashable {
    package let algorithm: ResourceEnd.DigestAlgorithm
    package let bytes: [UInt8]

    package init(_ algorithm: ResourceEnd.DigestAlgorithm, _ bytes: [UInt8]) {
        self.algorithm = algorithm
        self.bytes = bytes
    }

    /// `ALGORITHM:HEX`.
    package var text: String { "\(self.algorithm):" + self.bytes.hexadecimal }
}

/// The receipt of an incoming resource on one connection: it is resumed or started, received within a window or over data connections, then
/// verified and saved. A value; ``NodeCore`` performs its actions.
struct DownloadStateMachine: Sendable, Hashable {
    /// The next action of the node.
    enum Action: Sendable, Hashable {
        case wait
        /// Look for content kept from an earlier connection.
        case resume
        /// Tell the sender how much is already here.
        case tell(ResourceHeld)
        /// Reserve space, and discard content from earlier connections.
        case begin
        /// Ask the sender for these bytes over the control connection. An empty range before the end asks for a data connection instead.
        case accept(from: UInt64, upTo: UInt64)
        /// Allow the sender to continue up to the new limit.
        case widen(from: UInt64, upTo: UInt64)
        case receiveData
        /// Verify the whole and save it.
        case settle(ResourceDigest)
    }

    private enum State: Sendable, Hashable {
        case idle
        /// Another directory of the same peer has its turn first.
        case awaitingTurn
        case resuming
        case comparing
        case beginning
        /// Receives over the control connection, up to the limit.
        case receiving(UInt64, limit: UInt64)
        /// Waits for a data connection.
        case opening(UInt64)
        case receivingData(UInt64)
        case settling
    }

    private var state = State.idle
    /// Consecutive data connections that were lost without moving a byte.
    private var failures = 0
    /// Whether its rate allows a data connection.
    private var takesData = true

    /// Whether it receives over a data connection now.
    var isReceivingData: Bool { if case .receivingData = self.state { true } else { false } }

    /// Records whether its rate allows a data connection.
    mutating func takes(data: Bool) { self.takesData = data }

    /// Accepts the resource. A directory may have to wait for its turn.
    mutating func take(hasTurn: Bool) -> Action {
        self.state = hasTurn ? .resuming : .awaitingTurn
        return hasTurn ? .resume : .wait
    }

    mutating func turn() -> Action {
        guard self.state == .awaitingTurn else { return .wait }
        self.state = .resuming
        return .resume
    }

    /// Records the content kept from an earlier connection, if any.
    mutating func held(_ held: ResourceHeld?) -> Action {
        guard self.state == .resuming else { return .wait }
        self.state = held == nil ? .beginning : .comparing
        return held.map { .tell($0) } ?? .begin
    }

    /// Records the offset from which the sender continues.
    mutating func goes(on offset: UInt64, size: UInt64, window: UInt64) -> Action {
        guard self.state == .comparing, offset <= size else { return .wait }
        guard offset > 0 else {
            self.state = .beginning
            return .begin
        }
        return self.accept(from: offset, size: size, window: window)
    }

    /// Records that space is reserved.
    mutating func began(size: UInt64, window: UInt64) -> Action {
        guard self.state == .beginning else { return .wait }
        return self.accept(from: 0, size: size, window: window)
    }

    /// Accepts a large remainder over a data connection, and a small one over the control connection. If no data connection is possible,
    /// everything comes over the control connection.
    private mutating func accept(from offset: UInt64, size: UInt64, window: UInt64, hasData: Bool = true) -> Action {
        if hasData, self.takesData, self.failures < EarshotLimits.dataFailures, size - min(offset, size) >= EarshotLimits.dataThreshold {
            self.state = .opening(offset)
            return .accept(from: offset, upTo: offset)
        }
        let limit = min(size, offset + window)
        self.state = .receiving(offset, limit: limit)
        return .accept(from: offset, upTo: limit)
    }

    /// Records how many bytes are written, counted from the start.
    mutating func written(to offset: UInt64, size: UInt64, window: UInt64) -> Action {
        guard case .receiving(_, let limit) = self.state else { return .wait }
        self.state = .receiving(offset, limit: limit)
        guard limit < size, limit - min(offset, limit) <= window / 2 else { return .wait }
        let more = max(limit, min(size, offset + window))
        self.state = .receiving(offset, limit: more)
        return .widen(from: offset, upTo: more)
    }

    /// Records whether a data connection was established.
    mutating func dataOpened(_ stands: Bool, size: UInt64, window: UInt64) -> Action {
        guard case .opening(let offset) = self.state else { return .wait }
        guard stands, self.takesData else { return self.accept(from: offset, size: size, window: window, hasData: false) }
        self.state = .receivingData(offset)
        return .receiveData
    }

    /// Records that the data connection is finished: the sender must restart from the given offset, or confirm that nothing is left.
    mutating func dataEnded(at offset: UInt64, size: UInt64, window: UInt64) -> Action {
        guard case .receivingData(let start) = self.state else { return .wait }
        self.failures = offset > start ? 0 : self.failures + 1
        return self.accept(from: offset, size: size, window: window)
    }

    /// Records that the sender has sent everything.
    mutating func ended(_ digest: ResourceDigest) -> Action {
        guard case .receiving = self.state else { return .wait }
        self.state = .settling
        return .settle(digest)
    }
}
