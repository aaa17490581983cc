package import EarshotWire

/// The digest that a sender says of the whole.
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

/// How an incoming resource comes to be whole on one connection: resumed or begun, received within a window or over data connections,
/// checked and saved. A value; ``NodeCore`` performs its actions.
struct DownloadStateMachine: Sendable, Hashable {
    /// What the node has to do.
    enum Action: Sendable, Hashable {
        case wait
        /// Look at what is here of it from before.
        case resume
        /// Tell the sender what is here.
        case tell(ResourceHeld)
        /// Set its room aside, without what is here from before.
        case begin
        /// Have the sender send these over the control connection, or, with no room between them and something left, over a data connection.
        case accept(from: UInt64, upTo: UInt64)
        /// The sender may go on so far.
        case widen(from: UInt64, upTo: UInt64)
        case receiveData
        /// Check the whole and save it.
        case settle(ResourceDigest)
    }

    private enum State: Sendable, Hashable {
        case idle
        /// Another directory of that peer comes first.
        case awaitingTurn
        case resuming
        case comparing
        case beginning
        /// Over the control connection, up to the limit.
        case receiving(UInt64, limit: UInt64)
        /// Waits for a data connection.
        case opening(UInt64)
        case receivingData(UInt64)
        case settling
    }

    private var state = State.idle
    /// Data connections that were lost one after the other without a byte.
    private var failures = 0

    /// It is taken; a directory may have to wait for its turn.
    mutating func take(hasTurn: Bool) -> Action {
        self.state = hasTurn ? .resuming : .awaitingTurn
        return hasTurn ? .resume : .wait
    }

    mutating func turn() -> Action {
        guard self.state == .awaitingTurn else { return .wait }
        self.state = .resuming
        return .resume
    }

    /// What is here of it from before, if anything is.
    mutating func held(_ held: ResourceHeld?) -> Action {
        guard self.state == .resuming else { return .wait }
        self.state = held == nil ? .beginning : .comparing
        return held.map { .tell($0) } ?? .begin
    }

    /// The sender goes on from there.
    mutating func goes(on offset: UInt64, size: UInt64, window: UInt64) -> Action {
        guard self.state == .comparing, offset <= size else { return .wait }
        guard offset > 0 else {
            self.state = .beginning
            return .begin
        }
        return self.accept(from: offset, size: size, window: window)
    }

    /// There is room for it.
    mutating func began(size: UInt64, window: UInt64) -> Action {
        guard self.state == .beginning else { return .wait }
        return self.accept(from: 0, size: size, window: window)
    }

    /// Many bytes come over a data connection, few, or where there can be none, over the control connection.
    private mutating func accept(from offset: UInt64, size: UInt64, window: UInt64, hasData: Bool = true) -> Action {
        if hasData, self.failures < EarshotLimits.dataFailures, size - min(offset, size) >= EarshotLimits.dataThreshold {
            self.state = .opening(offset)
            return .accept(from: offset, upTo: offset)
        }
        let limit = min(size, offset + window)
        self.state = .receiving(offset, limit: limit)
        return .accept(from: offset, upTo: limit)
    }

    /// So much is written from the start.
    mutating func written(to offset: UInt64, size: UInt64, window: UInt64) -> Action {
        guard case .receiving(_, let limit) = self.state else { return .wait }
        self.state = .receiving(offset, limit: limit)
        guard limit < size, limit - min(offset, limit) <= window / 2 else { return .wait }
        let more = max(limit, min(size, offset + window))
        self.state = .receiving(offset, limit: more)
        return .widen(from: offset, upTo: more)
    }

    /// A data connection stands, or there will be none.
    mutating func dataOpened(_ stands: Bool, size: UInt64, window: UInt64) -> Action {
        guard case .opening(let offset) = self.state else { return .wait }
        guard stands else { return self.accept(from: offset, size: size, window: window, hasData: false) }
        self.state = .receivingData(offset)
        return .receiveData
    }

    /// Nothing comes on the data connection any more: the sender has to say the rest anew, or that there is none.
    mutating func dataEnded(at offset: UInt64, size: UInt64, window: UInt64) -> Action {
        guard case .receivingData(let start) = self.state else { return .wait }
        self.failures = offset > start ? 0 : self.failures + 1
        return self.accept(from: offset, size: size, window: window)
    }

    /// The sender has sent everything.
    mutating func ended(_ digest: ResourceDigest) -> Action {
        guard case .receiving = self.state else { return .wait }
        self.state = .settling
        return .settle(digest)
    }
}
