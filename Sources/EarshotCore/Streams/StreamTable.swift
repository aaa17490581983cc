import EarshotWire

/// Every open stream of both directions, the last closed ones, and the callers that wait for a stream.
struct StreamTable: Sendable {
    private var records = PeerTable<StreamID, StreamRecord>()
    /// The callers that wait for a stream, in the order of their requests.
    private(set) var acceptors: [StreamAcceptor] = []
    /// Whether no stream begins any more.
    private(set) var isOver = false

    subscript(id: StreamID) -> StreamRecord? { self.records[id] }

    /// Every row, oldest first.
    var rows: [ByteStream] { self.records.values.map(\.row) }

    /// Returns the ids of the streams with a facet, oldest first.
    func ids(_ facet: StreamRecord.Facets) -> [StreamID] { self.records.ids(facet) }
    func ids(of peer: PeerID, _ facet: StreamRecord.Facets) -> [StreamID] { self.records.ids(of: peer, facet) }
    func count(_ facet: StreamRecord.Facets) -> Int { self.records.count(facet) }
    func count(of peer: PeerID, _ facet: StreamRecord.Facets) -> Int { self.records.count(of: peer, facet) }

    /// Lets no stream begin any more.
    mutating func finish() { self.isOver = true }

    // MARK: Streams

    mutating func add(_ record: StreamRecord) { self.records[record.row.id] = record }

    /// Sets the connection on which both sides speak of a stream.
    mutating func speak(of id: StreamID, on link: LinkID?) { self.records[id]?.link = link }

    /// Opens an accepted stream: bytes may flow. Returns the charge that its sender had for the wait.
    mutating func open(_ id: StreamID) -> HoldID? {
        guard var record = self.records[id] else { return nil }
        let hold = record.hold
        record.hold = nil
        record.row.state = .open
        record.hasMover = true
        self.records[id] = record
        return hold
    }

    /// Sets the charge of its sender while the stream waits.
    mutating func charge(_ id: StreamID, _ hold: HoldID?) { self.records[id]?.hold = hold }

    mutating func lead(_ id: StreamID, to outlet: StreamRecord.Outlet) { self.records[id]?.outlet = outlet }

    mutating func step(_ id: StreamID, _ event: (inout StreamInlet) -> StreamInlet.Action) -> StreamInlet.Action {
        guard var record = self.records[id] else { return .wait }
        let action = event(&record.inlet)
        self.records[id] = record
        return action
    }

    /// Closes a stream, with an error if it failed. Returns it as it was; `nil` if it was closed before.
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

    /// Returns the closed stream that is no longer to be listed, after one of that peer's has been closed.
    mutating func surplus(endedBy peer: PeerID) -> StreamID? {
        self.records.surplus(beyond: EarshotLimits.closedStreams, endedBy: peer)
    }

    // MARK: Acceptors

    mutating func wait(_ acceptor: StreamAcceptor) { self.acceptors.append(acceptor) }

    /// Removes and returns the acceptor that has waited longest for a stream of this name and peer.
    mutating func popAcceptor(of stream: ByteStream) -> StreamAcceptor? {
        self.acceptors.firstIndex { $0.takes(stream) }.map { self.acceptors.remove(at: $0) }
    }

    /// Removes an acceptor; `false` if it does not wait.
    mutating func dismiss(_ call: CallID) -> Bool {
        guard let index = self.acceptors.firstIndex(where: { $0.call == call }) else { return false }
        self.acceptors.remove(at: index)
        return true
    }
}
