import EarshotWire

/// What a peer decides, as a value: an input and the time come in, effects go out, and nothing else happens.
///
/// The shell (`Earshot`'s `Node`) carries the effects of one input out, in order and without waiting, before it hands in the next one. So a
/// run is its inputs: two cores that are handed the same ones do the same, which is what the simulator plays with.
package struct NodeCore: Sendable {
    /// What comes due by itself.
    private enum Deadline: Hashable, Sendable {
        case dataPath(TransferID, attempt: UInt64)
    }

    private var deadlines = Deadlines<Deadline>()
    private var dataPaths: DataPaths

    /// `random` makes what nobody may guess: the system's generator, where nobody plays.
    package init(random: any RandomNumberGenerator & Sendable) {
        self.dataPaths = DataPaths(random: random)
    }

    /// Takes one input at a time, and appends what is to be done to `effects`. What is due by then is dealt with first: a machine that was
    /// suspended does nothing late that it had to do before.
    package mutating func handle(_ input: Input, at now: MonotonicInstant, into effects: inout [Effect]) {
        while let deadline = self.deadlines.popDue(at: now) {
            switch deadline {
            case .dataPath(let transfer, let attempt): self.handle(transfer, .expired(attempt: attempt), at: now, into: &effects)
            }
        }
        switch input {
        case .deadline: break
        case .dataPath(let transfer, let event): self.handle(transfer, event, at: now, into: &effects)
        case .peer(let peer, .detached):
            for transfer in self.dataPaths.transfers(of: peer) { self.handle(transfer, .over, at: now, into: &effects) }
        }
    }

    /// When `.deadline` is to come in, unless another input comes before it.
    package var nextDeadline: MonotonicInstant? { self.deadlines.next }

    /// Data connections, and attempts at them.
    package var dataPathCount: Int { self.dataPaths.count }

    private mutating func handle(
        _ transfer: TransferID, _ event: DataPathEvent, at now: MonotonicInstant, into effects: inout [Effect]
    ) {
        let before = self.dataPaths.waiting(transfer)
        self.dataPaths.handle(event, of: transfer, into: &effects)
        let after = self.dataPaths.waiting(transfer)
        guard before != after else { return }
        if let before { self.deadlines.cancel(.dataPath(transfer, attempt: before)) }
        if let after { self.deadlines.set(.dataPath(transfer, attempt: after), at: now + EarshotLimits.dataDialTime) }
    }
}
