import EarshotCore
import EarshotWire
import NIOCore
import OrderedCollections

/// Streams: the users' calls, and the movers of their bytes, which are only counted.
extension World {
    // MARK: Users

    mutating func stream(_ action: Action, on machine: Int) {
        switch action.verb {
        case .accept:
            let waiting = self.streams(of: machine) { $0.direction == .incoming && (action[1] % 7 == 0 || $0.state == .opening) }
            if let id = Self.pick(action[1], of: waiting) { self.call(.stream(.accept(id)), on: machine) }
        case .gone:
            let calls = self.machines[machine].calls.filter { if case .stream = $0.command { true } else { false } }
            guard !calls.isEmpty else { return }
            let call = calls[action[1] % calls.count].id
            guard let stream = self.machines[machine].streams.opened[call] else { return self.hand(.callerGone(call), to: machine) }
            self.hand(.stream(stream, .abandoned), to: machine)
        case .write:
            guard let id = Self.pick(action[1], of: self.movers(of: machine) { $0.outgoing?.isFinished == false }) else { return }
            self.change(id, of: machine) { (mover: inout StreamMover.Outgoing) in mover.written += action[2] }
            self.pump(id, of: machine)
        case .finish:
            guard let id = Self.pick(action[1], of: self.movers(of: machine) { $0.outgoing?.isFinished == false }) else { return }
            self.change(id, of: machine) { (mover: inout StreamMover.Outgoing) in mover.isFinished = true }
            self.pump(id, of: machine)
        case .read:
            if let id = Self.pick(action[1], of: self.movers(of: machine) { $0.incoming != nil }) { self.read(id, of: machine) }
        case .abort:
            guard let id = Self.pick(action[1], of: self.streams(of: machine) { _ in true }) else { return }
            let isOutgoing = self.machines[machine].streams.movers[id]?.outgoing != nil
            switch action[2] % 3 {
            case 0: self.call(.stream(.remove(id)), on: machine)
            case 1 where isOutgoing: self.hand(.stream(id, .broken(EarshotError(.cancelled, "cut off"))), to: machine)
            default: self.hand(.stream(id, .abandoned), to: machine)
            }
        default: break
        }
    }

    private func streams(of machine: Int, where condition: (ByteStream) -> Bool) -> [StreamID] {
        (self.machines[machine].core?.allStreams ?? []).filter(condition).map(\.id)
    }

    private func movers(of machine: Int, where condition: (StreamMover) -> Bool) -> [StreamID] {
        self.machines[machine].streams.movers.filter { condition($0.value) }.map(\.key)
    }

    private static func pick(_ number: Int, of ids: [StreamID]) -> StreamID? { ids.isEmpty ? nil : ids[number % ids.count] }

    // MARK: Effects

    /// Carries out a command like `Node+StreamMovers.swift`.
    mutating func carryOut(_ command: StreamCommand, _ id: StreamID, on machine: Int) {
        let mover = self.machines[machine].streams.movers[id]
        var random = SplitMix64(seed: self.schedule.seed, 11, id.low, UInt64(machine))
        switch command {
        case .send(let peer, let call):
            let sending = StreamMover.Outgoing(
                peer: peer, written: random.one(of: [0, 10, 50_000, 200_000, 900_000]), isFinished: random.chance(30))
            self.machines[machine].streams.movers[id] = .outgoing(sending)
            self.machines[machine].streams.opened[call] = id
        case .receive(let peer, let link, let window):
            let receiving = StreamMover.Incoming(
                peer: peer, link: link, window: Int(window), isEager: random.chance(70), limit: Int(window))
            self.machines[machine].streams.movers[id] = .incoming(receiving)
        case .permit(let limit, let link):
            self.change(id, of: machine) { (mover: inout StreamMover.Outgoing) in
                mover.link = link
                mover.limit = Int(clamping: limit)
            }
            self.pump(id, of: machine)
        case .askForData:
            guard let mover = mover?.outgoing, let link = mover.link, !mover.hasEnded else {
                return self.hand(.stream(id, .dataUnneeded), to: machine)
            }
            self.send([.stream(.reroute(StreamReroute(id: id, offset: UInt64(mover.sent))))], on: link)
            self.hand(.stream(id, .dataAsked), to: machine)
        case .useData: self.useData(id, of: machine)
        case .readData:
            guard let data = self.machines[machine].data.open[TransferID(id)] else { return self.dataHasEnded(id, at: machine) }
            self.change(id, of: machine) { (mover: inout StreamMover.Incoming) in mover.data = data }
            self.clock.plan(.streamBytes(machine, run: self.machines[machine].run, id), after: .milliseconds(1))
        case .callBack(let link): self.callBack(id, of: machine, on: link)
        case .goBack(let offset): self.goBack(id, of: machine, to: Int(clamping: offset))
        case .end: self.machines[machine].streams.movers[id] = .over
        case .forget: self.machines[machine].streams.movers.removeValue(forKey: id)
        }
    }

    private mutating func change(_ id: StreamID, of machine: Int, _ body: (inout StreamMover.Outgoing) -> Void) {
        guard var mover = self.machines[machine].streams.movers[id]?.outgoing else { return }
        body(&mover)
        self.machines[machine].streams.movers[id] = .outgoing(mover)
    }

    private mutating func change(_ id: StreamID, of machine: Int, _ body: (inout StreamMover.Incoming) -> Void) {
        guard var mover = self.machines[machine].streams.movers[id]?.incoming else { return }
        body(&mover)
        self.machines[machine].streams.movers[id] = .incoming(mover)
    }

    // MARK: Sending

    /// Sends the written bytes that the receiver permits.
    private mutating func pump(_ id: StreamID, of machine: Int) {
        guard let before = self.machines[machine].streams.movers[id]?.outgoing, let link = before.link, !before.hasEnded else { return }
        var mover = before
        let count = min(mover.written, mover.limit) - mover.sent
        if count > 0 {
            if let data = mover.data {
                self.write(count, to: data, id, with: mover.peer)
            } else {
                self.sendBytes(of: id, count, on: link)
            }
            mover.sent += count
        }
        mover.hasEnded = mover.isFinished && mover.sent == mover.written
        if mover.hasEnded { self.send([.stream(.end(StreamEnd(id: id, size: UInt64(mover.sent))))], on: link) }
        let isLarge = !mover.isLarge && mover.sent >= StreamMover.Outgoing.large
        if isLarge { mover.isLarge = true }
        self.machines[machine].streams.movers[id] = .outgoing(mover)
        // Its task hands that in a little later.
        if isLarge {
            let input = Input.stream(id, .isLarge)
            self.clock.plan(.input(machine, run: self.machines[machine].run, input), after: .microseconds(100))
        }
    }

    private static let zeros = ByteBuffer(repeating: 0, count: WireLimits.streamData)

    private mutating func sendBytes(of id: StreamID, _ count: Int, on link: LinkID) {
        var left = count
        while left > 0, let piece = Self.zeros.getSlice(at: 0, length: min(left, WireLimits.streamData)) {
            self.send([.stream(.data(StreamData(id: id, data: piece)))], on: link)
            left -= piece.readableBytes
        }
    }

    /// Sends bytes over a data connection. The receiver calls back those that are lost with it.
    private mutating func write(_ count: Int, to data: Int, _ id: StreamID, with peer: PeerID) {
        guard !self.dataConnections[data].isClosed else { return }
        self.dataConnections[data].bytes += count
        guard let other = self.machine(of: peer) else { return }
        self.clock.plan(.streamBytes(other, run: self.machines[other].run, id), after: .milliseconds(1))
    }

    private mutating func useData(_ id: StreamID, of machine: Int) {
        guard let mover = self.machines[machine].streams.movers[id]?.outgoing, let link = mover.link, !mover.hasEnded,
            let data = self.machines[machine].data.open[TransferID(id)]
        else { return self.hand(.stream(id, .dataUnneeded), to: machine) }
        self.counts[.streamsMoved] += 1
        self.send([.stream(.rerouted(StreamReroute(id: id, offset: UInt64(mover.sent))))], on: link)
        self.change(id, of: machine) { (mover: inout StreamMover.Outgoing) in mover.data = data }
    }

    private mutating func goBack(_ id: StreamID, of machine: Int, to offset: Int) {
        guard let mover = self.machines[machine].streams.movers[id]?.outgoing, let link = mover.link, mover.data != nil else { return }
        self.counts[.streamsCalledBack] += 1
        self.change(id, of: machine) { (mover: inout StreamMover.Outgoing) in mover.data = nil }
        self.send([.stream(.rerouted(StreamReroute(id: id, offset: UInt64(offset))))], on: link)
        self.sendBytes(of: id, max(0, mover.sent - offset), on: link)
        if mover.hasEnded { self.send([.stream(.end(StreamEnd(id: id, size: UInt64(mover.sent))))], on: link) }
    }

    // MARK: Receiving

    /// Receives bytes like `Node.received`.
    mutating func received(_ data: StreamData, at machine: Int) {
        self.change(data.id, of: machine) { (mover: inout StreamMover.Incoming) in mover.received += data.data.readableBytes }
        self.take(data.id, of: machine)
    }

    mutating func received(_ end: StreamEnd, at machine: Int) {
        self.change(end.id, of: machine) { (mover: inout StreamMover.Incoming) in mover.size = Int(clamping: end.size) }
        self.take(end.id, of: machine)
    }

    /// Takes the bytes of its data connection, and notes whether more will come.
    mutating func receiveBytes(_ id: StreamID, of machine: Int) {
        guard let mover = self.machines[machine].streams.movers[id]?.incoming, let data = mover.data else { return }
        let bytes = self.dataConnections[data].bytes
        self.dataConnections[data].bytes = 0
        let isLost = self.dataConnections[data].isClosed
        self.change(id, of: machine) { (mover: inout StreamMover.Incoming) in
            mover.received += bytes
            if isLost { mover.data = nil }
        }
        if isLost { self.dataHasEnded(id, at: machine) }
        self.take(id, of: machine)
    }

    /// Checks that bytes lost with a stream's data connection are called back at once: nothing else would recover them.
    private mutating func dataHasEnded(_ id: StreamID, at machine: Int) {
        self.hand(.stream(id, .dataEnded(nil)), to: machine)
        guard let row = try? self.machines[machine].core?.stream(id), row.state == .open,
            let mover = self.machines[machine].streams.movers[id]?.incoming, !mover.isFinished, !mover.isCalledBack
        else { return }
        self.fail(.streams, "\(machine) has lost bytes of \(id) with its data connection, and does not call them back")
    }

    private mutating func callBack(_ id: StreamID, of machine: Int, on link: LinkID) {
        self.change(id, of: machine) { (mover: inout StreamMover.Incoming) in mover.isCalledBack = true }
        guard let mover = self.machines[machine].streams.movers[id]?.incoming, mover.received != mover.size else { return }
        self.change(id, of: machine) { (mover: inout StreamMover.Incoming) in
            mover.data = nil
            mover.size = nil
        }
        self.send([.stream(.reroute(StreamReroute(id: id, offset: UInt64(mover.received))))], on: link)
    }

    private mutating func take(_ id: StreamID, of machine: Int) {
        if self.machines[machine].streams.movers[id]?.incoming?.isEager == true { self.read(id, of: machine) }
    }

    /// Lets the reader take all received bytes.
    private mutating func read(_ id: StreamID, of machine: Int) {
        guard var mover = self.machines[machine].streams.movers[id]?.incoming, !mover.isFinished else { return }
        mover.taken = mover.received
        let isWhole = mover.received == mover.size
        if !isWhole, mover.limit - mover.taken <= mover.window / 2 {
            mover.limit = mover.taken + mover.window
            self.send([.stream(.accept(StreamAccept(id: id, limit: UInt64(mover.limit))))], on: mover.link)
        }
        mover.isFinished = isWhole
        self.machines[machine].streams.movers[id] = .incoming(mover)
        if isWhole { self.call(.stream(.finish(id)), on: machine) }
    }

    // MARK: Data connections

    /// Cuts a data connection for both sides: usually one of a stream, if there is one.
    mutating func cut(_ number: Int) {
        let used = self.dataConnections.indices.filter { !self.dataConnections[$0].isClosed && !self.dataConnections[$0].users.isEmpty }
        let ofStreams = used.filter { self.isOfStream(self.dataConnections[$0]) }
        let choice = number % 8 == 0 || ofStreams.isEmpty ? used : ofStreams
        if !choice.isEmpty { self.refuseData(choice[number / 8 % choice.count]) }
    }

    private func isOfStream(_ connection: DataConnection) -> Bool {
        connection.users.contains { self.stream(of: connection.transfer, on: $0) != nil }
    }
}
