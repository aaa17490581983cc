import EarshotWire

/// A stream with the decisions about it while it is open.
struct StreamRecord: Sendable {
    /// The connection that carries the bytes of a sent stream.
    enum Outlet: Sendable, Hashable {
        case control
        /// The stream has sent enough for a data connection, and waits for its turn to open one.
        case wanted
        /// Both sides are opening a data connection.
        case opening
        /// The attempt is over, whether or not it led to a data connection.
        case settled
    }

    private(set) var row: ByteStream
    /// The connection on which both sides have spoken of the stream.
    private(set) var link: LinkID?
    /// The caller that has opened the stream here, and waits for its end.
    private(set) var opener: CallID?
    /// The charge of its sender while the stream waits here.
    private(set) var hold: HoldID?
    /// The progress of a received stream to a data connection.
    private(set) var inlet = StreamInlet()
    /// The progress of a sent stream to a data connection.
    private(set) var outlet = Outlet.control
    /// Whether a mover on this machine moves its bytes, or has moved them.
    private(set) var hasMover: Bool

    /// Whether the stream waits to be accepted here.
    var isWaiting: Bool { self.row.direction == .incoming && self.row.state == .opening }

    /// Whether this side has opened the stream, and the peer has not accepted it yet.
    var isOpeningHere: Bool { self.row.direction == .outgoing && self.row.state == .opening }

    /// Sets the connection on which both sides speak of the stream.
    mutating func speak(on link: LinkID?) { self.link = link }
    /// Sets the charge of the sender while the stream waits.
    mutating func charge(_ hold: HoldID?) { self.hold = hold }
    mutating func lead(to outlet: Outlet) { self.outlet = outlet }
    mutating func step(_ event: (inout StreamInlet) -> StreamInlet.Action) -> StreamInlet.Action { event(&self.inlet) }

    /// Opens the accepted stream. Returns the charge that its sender had for the wait.
    mutating func open() -> HoldID? {
        defer { self.hold = nil }
        self.row.state = .open
        self.hasMover = true
        return self.hold
    }

    /// Closes the stream, with an error if it failed.
    mutating func close(_ error: EarshotError?, at now: WallTime) {
        self.row.state = .closed
        self.row.closed = now
        self.row.error = error?.code
        self.row.errorMessage = error?.message
        self.link = nil
        self.opener = nil
        self.hold = nil
        self.outlet = .settled
    }
}

/// Streams are counted by these facets, because the core looks them up for each frame of a peer.
extension StreamRecord: PeerTableRow {
    struct Facets: OptionSet, Sendable, Hashable {
        let rawValue: UInt16
        /// Not closed.
        static let open = Facets(rawValue: 1 << 0)
        static let openIncoming = Facets(rawValue: 1 << 1)
        static let openOutgoing = Facets(rawValue: 1 << 2)
        /// Waits to be accepted here.
        static let waiting = Facets(rawValue: 1 << 3)
        /// Has sent enough for a data connection, and waits for its turn to open one.
        static let wantsData = Facets(rawValue: 1 << 4)
        /// Both sides are opening a data connection.
        static let opensData = Facets(rawValue: 1 << 5)
        /// Closed: it remains only for listing.
        static let finished = Facets(rawValue: 1 << 6)
    }

    static var finished: Facets { .finished }

    var peerID: PeerID { self.row.peerID }

    var facets: Facets {
        var facets: Facets = []
        switch self.row.state {
        case .opening, .open: facets.formUnion([.open, self.row.direction == .incoming ? .openIncoming : .openOutgoing])
        case .closed: facets.insert(.finished)
        }
        if self.isWaiting { facets.insert(.waiting) }
        switch self.outlet {
        case .wanted: facets.insert(.wantsData)
        case .opening: facets.insert(.opensData)
        case .control, .settled: break
        }
        return facets
    }
}

/// A caller that waits for a stream to accept.
struct StreamAcceptor: Sendable {
    let call: CallID
    /// The name of the stream; any if `nil`.
    let name: String?
    /// The sender of the stream; any if `nil`.
    let peer: PeerID?

    func takes(_ stream: ByteStream) -> Bool {
        (self.name?.utf8.elementsEqual(stream.name.utf8) ?? true) && (self.peer == nil || self.peer == stream.peerID)
    }
}
