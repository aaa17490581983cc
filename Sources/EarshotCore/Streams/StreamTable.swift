import EarshotWire

/// Every stream of both directions that is open, the last ones that were closed, and who waits for one.
struct StreamTable: Sendable {
    private var records = PeerTable<StreamID, StreamRecord>()
    /// Who waits for one, the first comer first.
    private(set) var acceptors: [StreamAcceptor] = []
    /// Whether none begins any more.
    private(set) var isOver = false

    subscript(id: StreamID) -> StreamRecord? { self.records[id] }

    /// Every row, the oldest first.
    var rows: [ByteStream] { self.records.values.map(\.row) }

    /// Those of one kind, the oldest first.
    func ids(_ facet: StreamRecord.Facets) -> [StreamID] { self.records.ids(facet) }
    func ids(of peer: PeerID, _ facet: StreamRecord.Facets) -> [StreamID] { self.records.ids(of: peer, facet) }
    func count(_ facet: StreamRecord.Facets) -> Int { self.records.count(facet) }
    func count(of peer: PeerID, _ facet: StreamRecord.Facets) -> Int { self.records.count(of: peer, facet) }

    /// None begins any more.
    mutating func finish() { self.isOver = true }

    // MARK: Streams

    mutating func add(_ record: StreamRecord) { self.records[record.row.id] = record }

    /// Both sides speak of it on this connection, or on none.
    mutating func speak(of id: StreamID, on link: LinkID?) { self.records[id]?.link = link }

    /// It waits for nobody any more: bytes may flow. Gives what its sender was charged for that.
    mutating func open(_ id: StreamID) -> HoldID? {
        guard var record = self.records[id] else { return nil }
        let hold = record.hold
        record.hold = nil
        record.row.state = .open
        record.hasMover = true
        self.records[id] = record
        return hold
    }

    /// What its sender is charged while it waits.
    mutating func charge(_ id: StreamID, _ hold: HoldID?) { self.records[id]?.hold = hold }

    mutating func lead(_ id: StreamID, to outlet: StreamRecord.Outlet) { self.records[id]?.outlet = outlet }

    mutating func step(_ id: StreamID, _ event: (inout StreamInlet) -> StreamInlet.Action) -> StreamInlet.Action {
        guard var record = self.records[id] else { return .wait }
        let action = event(&record.inlet)
        self.records[id] = record
        return action
    }

    /// It is over: by a fault, where there is an error. Gives it as it was; `nil` where it is over already.
    mutating func close(_ id: StreamID, _ error: EarshotError?, at now: WallTime) -> StreamRecord? {
        guard let before = self.records[id], before.row.state != .closed else { return nil }
        var record = before
        record.row.state = .closed
        record.row.closed = now
        record.row.error = error?.code
        record.row.errorMessage = error?.message
        record.link = nil
        record.opener = nil
        record.hold = nil
        record.outlet = .settled
        self.records[id] = record
        return before
    }

    mutating func remove(_ id: StreamID) { self.records[id] = nil }

    /// Which closed one is not listed any longer, after one of that peer's has been closed.
    mutating func surplus(endedBy peer: PeerID) -> StreamID? {
        self.records.surplus(beyond: EarshotLimits.closedStreams, endedBy: peer)
    }

    // MARK: Acceptors

    mutating func wait(_ acceptor: StreamAcceptor) { self.acceptors.append(acceptor) }

    /// Takes out the acceptor that has waited longest for a stream of this name and peer.
    mutating func popAcceptor(of stream: ByteStream) -> StreamAcceptor? {
        self.acceptors.firstIndex { $0.takes(stream) }.map { self.acceptors.remove(at: $0) }
    }

    /// `false` where it does not wait.
    mutating func dismiss(_ call: CallID) -> Bool {
        guard let index = self.acceptors.firstIndex(where: { $0.call == call }) else { return false }
        self.acceptors.remove(at: index)
        return true
    }
}
