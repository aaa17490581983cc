import EarshotWire

/// Charging peers for the work that they cause.
///
/// While the node handles input from a peer, ``Node/cause`` is that peer's account. Work that starts meanwhile goes through one of three
/// functions: `enqueue` for the disk, `spawn` for jobs, `schedule` for timers. Each of them lets the work hold a ``Charge`` until it is
/// done. Work that follows from decisions is charged to the same peer. A new kind of frame therefore needs no charging code.
extension Node {
    /// Runs work on a peer's account, or on no account if no peer caused it.
    func working<Result>(for account: PeerAccount?, _ work: () -> Result) -> Result {
        let before = self.cause
        self.cause = account
        defer { self.cause = before }
        return work()
    }

    /// Returns the charge that work holds until it is done, or `nil` if no peer caused it.
    func charge(_ bytes: Int) -> Charge? { self.cause.map { Charge(bytes, to: $0) } }

    /// Adds the peer's charge to store work.
    func charged(_ work: StoreWork) -> StoreWork {
        switch work {
        // These carry their charge already: messages hold their weight until they are on disk, and a change of the outbox has its own
        // charge.
        case .outbox, .deliver: return work
        case .apply, .decide: break
        }
        guard let charge = self.charge(EarshotLimits.storeWorkCharge) else { return work }
        let held = { (then: @escaping (Result<Void, EarshotError>) -> Void) in
            { (result: Result<Void, EarshotError>) in self.working(for: charge.account) { then(result) } }
        }
        switch work {
        case .apply(let changes, let then): return .apply(changes, then: held(then))
        case .decide(let decision, let then):
            return .decide({ self.working(for: charge.account, decision) }, then: held(then))
        case .outbox, .deliver: return work
        }
    }
}

extension NodeInput {
    /// The account of the peer that caused the input.
    var account: PeerAccount? {
        switch self {
        case .connection(.received(let connection, _, _)), .connection(.receivedUnreliable(let connection, _, _)): connection.account
        case .timer(_, let charge): charge?.account
        // Handshakes have their own limits. Work that waits for a proven connection remains after the connection is gone.
        case .connection(.proven), .connection(.closed), .discovery, .heartbeat, .discoveryEnded, .core, .dataAttached, .dataDialFailed,
            .deviceAnnounced, .streamsOver:
            nil
        }
    }
}
