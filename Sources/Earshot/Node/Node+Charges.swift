import EarshotWire

/// Charging peers for the work that they cause.
///
/// While the node deals with what a peer has sent, ``Node/cause`` is that peer's account. Work that begins meanwhile goes through one of
/// three functions (`enqueue` for the disk, `spawn` for jobs, `schedule` for timers), each of which lets the work hold a ``Charge`` until it
/// is done; what follows from decisions is charged to the same peer. A new kind of frame is charged without a line of its own.
extension Node {
    /// Does what a peer has caused, or, without an account, what no peer has.
    func working<Result>(for account: PeerAccount?, _ work: () -> Result) -> Result {
        let before = self.cause
        self.cause = account
        defer { self.cause = before }
        return work()
    }

    /// Held by work until it is done, where a peer has caused it.
    func charge(_ bytes: Int) -> Charge? { self.cause.map { Charge(bytes, to: $0) } }

    /// Store work that holds what a peer is charged for it.
    func charged(_ work: StoreWork) -> StoreWork {
        switch work {
        // They have theirs already: the weight of messages is charged until they are on disk, and a change of the outbox carries its own.
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
    /// Whose work it is.
    var account: PeerAccount? {
        switch self {
        case .connection(.received(let connection, _, _)), .connection(.receivedUnreliable(let connection, _, _)): connection.account
        case .timer(_, let charge): charge?.account
        // Handshakes have their own limits, and what waits for a connection that stands waits after it has gone as well.
        case .connection(.proven), .connection(.closed), .discovery, .heartbeat, .discoveryEnded, .core, .dataAttached, .dataDialFailed,
            .streamsOver:
            nil
        }
    }
}
