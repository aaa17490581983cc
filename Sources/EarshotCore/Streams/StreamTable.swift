import EarshotWire

/// Every open stream of both directions, the last closed ones, and the callers that wait for a stream.
struct StreamTable: Sendable {
    private var records = PeerTable<StreamID, StreamRecord>()
    /// The callers that wait for a stream, in the order of their requests.
    private(set) var acceptors: [StreamAcceptor] = []
    /// Whether no stream begins any more.
    private(set) var isOver = false

    /// Accesses a stream, for calls of its methods in place. `add` and `remove` decide which streams there are.
    subscript(id: StreamID) -> StreamRecord? {
        get { self.records[id] }
        set { self.records[id] = newValue }
    }

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

    /// Closes a stream, with an error if it failed. Returns it as it was; `nil` if it was closed before.
    mutating func close(_ id: StreamID, _ error: EarshotError?, at now: WallTime) -> StreamRecord? {
        guard let before = self.records[id], before.row.state != .closed else { return nil }
        self.records[id]?.close(error, at: now)
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
