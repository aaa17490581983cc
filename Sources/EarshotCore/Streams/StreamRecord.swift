import EarshotWire

/// A stream, and what is decided about it while it is open.
struct StreamRecord: Sendable {
    /// Where the bytes of a stream that is sent go.
    enum Outlet: Sendable, Hashable {
        case control
        /// It has sent enough for a data connection, and waits for its turn to open one.
        case wanted
        /// Both sides open one.
        case opening
        /// It stands, or will not.
        case settled
    }

    var row: ByteStream
    /// The connection on which both sides have spoken of it.
    var link: LinkID?
    /// Who has opened it here, and waits for its end.
    var opener: CallID?
    /// What its sender is charged while it waits here.
    var hold: HoldID?
    /// How far one that is received is on its way to a data connection.
    var inlet = StreamInlet()
    /// The same of one that is sent.
    var outlet = Outlet.control
    /// Whether anything on this machine moves its bytes, or has moved them.
    var hasMover: Bool

    /// Whether it waits to be accepted on this side.
    var isWaiting: Bool { self.row.direction == .incoming && self.row.state == .opening }

    /// Whether this side has opened it, and the other side has not accepted it yet.
    var isOpeningHere: Bool { self.row.direction == .outgoing && self.row.state == .opening }
}

/// What is asked of streams for each frame of a peer, and so is counted.
extension StreamRecord: PeerTableRow {
    struct Facets: OptionSet, Sendable, Hashable {
        let rawValue: UInt16
        /// Not closed.
        static let open = Facets(rawValue: 1 << 0)
        static let openIncoming = Facets(rawValue: 1 << 1)
        static let openOutgoing = Facets(rawValue: 1 << 2)
        /// Waits to be accepted on this side.
        static let waiting = Facets(rawValue: 1 << 3)
        /// It has sent enough for a data connection, and waits for its turn to open one.
        static let wantsData = Facets(rawValue: 1 << 4)
        /// Both sides open one.
        static let opensData = Facets(rawValue: 1 << 5)
        /// Closed: it stays only to be listed.
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
    /// Any name where `nil`.
    let name: String?
    /// Any peer where `nil`.
    let peer: PeerID?

    func takes(_ stream: ByteStream) -> Bool {
        (self.name?.utf8.elementsEqual(stream.name.utf8) ?? true) && (self.peer == nil || self.peer == stream.peerID)
    }
}
