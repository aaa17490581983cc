import EarshotCore
import EarshotWire
import OrderedCollections

/// The invariants of streams.
extension World {
    // MARK: Movers

    mutating func check(_ command: StreamCommand, for id: StreamID, of machine: Int, _ effect: Effect, _ input: Input) {
        switch command {
        case .receive(_, let link, _), .permit(_, let link), .callBack(let link): _ = self.checkLink(link, of: machine, effect, input)
        case .send, .askForData, .useData, .readData, .goBack, .end, .forget: break
        }
        let isExpected =
            switch (command, self.machines[machine].streams.movers[id]) {
            case (.send, nil), (.receive, nil): true
            case (.permit, .outgoing), (.askForData, .outgoing), (.useData, .outgoing), (.goBack, .outgoing): true
            case (.readData, .incoming), (.callBack, .incoming): true
            case (.end, .outgoing), (.end, .incoming): true
            case (.forget, .over): true
            default: false
            }
        if !isExpected { self.fail(.streams, "\(machine) has \(command) for \(id), which is not there so, after \(input)") }
    }

    // MARK: Events

    /// Checks that a stream is published once as open, and once as closed.
    mutating func note(_ stream: ByteStream, at machine: Int) {
        let isOpen = stream.state != .closed
        if (self.machines[machine].streams.shown[stream.id] ?? false) == isOpen {
            self.fail(.streams, "\(machine) says twice that \(stream.id) is \(stream.state.rawValue)")
        }
        self.machines[machine].streams.shown[stream.id] = isOpen
        guard !isOpen else {
            self.counts[.streams] += 1
            var random = SplitMix64(seed: self.schedule.seed, 12, stream.id.low, UInt64(machine))
            guard stream.direction == .incoming, random.chance(40) else { return }
            let what = Happening.accepts(machine, run: self.machines[machine].run, stream.id)
            return self.clock.plan(what, after: .milliseconds(random.one(of: [0, 1, 20, 3_000])))
        }
        switch stream.error {
        case nil: self.counts[.streamsDone] += 1
        case .timedOut: self.counts[.streamsTimedOut] += 1
        case .busy: self.counts[.streamsBusy] += 1
        case .unavailable: self.counts[.streamsLost] += 1
        default: self.counts[.streamsAborted] += 1
        }
    }

    // MARK: Answers to callers

    mutating func check(_ answer: Answer, to request: StreamRequest, of machine: Int) {
        let isExpected: Bool
        switch (request, answer) {
        case (.open, .stream(let row)): isExpected = row.state == .closed && row.error == nil
        case (.accept(let id), .stream(let row)): isExpected = row.state == .open && row.id == id
        case (.acceptNext(let name, _, _), .stream(let row)): isExpected = row.state == .open && (name == nil || name == row.name)
        case (.remove, .stream(let row)): isExpected = row.state == .closed
        case (.remove, .done): isExpected = true
        case (.finish(let id), .done):
            self.checkWhole(id, at: machine)
            isExpected = true
        default: isExpected = false
        }
        if case .stream(let row) = answer, row.state == .open { self.counts[.streamsAccepted] += 1 }
        if !isExpected { self.fail(.answers, "\(machine) answers \(request) with \(answer)") }
    }

    /// Checks that the reader has everything that the sender has sent. A hostile peer's stream may have the same id as another pair's.
    private mutating func checkWhole(_ id: StreamID, at machine: Int) {
        guard let row = try? self.machines[machine].core?.stream(id), let other = self.machine(of: row.peerID) else { return }
        // The sender's own end comes later.
        guard let sender = self.machines[other].streams.movers[id]?.outgoing, sender.peer == self.machines[machine].id else { return }
        if !sender.hasEnded { self.fail(.streams, "\(machine) has all of \(id), and \(other) has not sent all") }
    }

    // MARK: Final state

    /// Checks that both sides have the same streams, none waits for the other side, and all sent bytes have arrived.
    mutating func checkStreams(_ one: Int, _ other: Int) {
        guard let core = self.machines[one].core, let far = self.machines[other].core else { return }
        for row in core.allStreams where row.peerID == self.machines[other].id && row.state != .closed {
            guard row.state == .open else { return self.fail(.streams, "\(one) still waits for \(row.id) to be accepted") }
            guard let theirs = try? far.stream(row.id), theirs.state == .open, theirs.direction != row.direction,
                theirs.peerID == self.machines[one].id
            else { return self.fail(.streams, "\(row.id) is open at \(one), and not at \(other)") }
            self.counts[.streamsLeft] += 1
            guard let sender = self.machines[one].streams.movers[row.id]?.outgoing else { continue }
            guard let receiver = self.machines[other].streams.movers[row.id]?.incoming, receiver.received == sender.sent else {
                return self.fail(.streams, "of \(row.id) \(one) has sent \(sender.sent) bytes, which have not come")
            }
            if sender.hasEnded, receiver.isEager { self.fail(.streams, "\(row.id) has ended, and nobody is told so") }
        }
    }
}
