import EarshotWire
import OrderedCollections

/// The LocalSend devices that this machine knows, and their offers and sessions.
struct DeviceTable: Sendable {
    private var records: OrderedDictionary<PeerID, DeviceRecord> = [:]
    /// The offers that are not decided yet.
    private(set) var offers: OrderedDictionary<InvitationID, PendingOffer> = [:]
    private(set) var sessions: OrderedDictionary<SessionID, DeviceSession> = [:]
    /// The file of each transfer that is being received.
    private var uploads: [ResourceID: (session: SessionID, file: String)] = [:]
    /// The calls of blocked devices, which are refused later.
    private var late: OrderedSet<CallID> = []
    /// Space that is being reserved for offers that have ended meanwhile.
    private var abandoned: OrderedDictionary<InvitationID, [ResourceID]> = [:]
    var pins = WrongPINs()
    var registers = RegisterLimit()
    var announcements = AnnouncementState()
    /// The messages and resources for devices.
    var shipments = DeviceShipments()

    // MARK: Devices

    subscript(id: PeerID) -> DeviceRecord? {
        get { self.records[id] }
        _modify { yield &self.records[id] }
    }

    /// All devices, in the order in which they came.
    var all: OrderedDictionary<PeerID, DeviceRecord>.Values { self.records.values }
    var count: Int { self.records.count }

    mutating func add(_ record: DeviceRecord) { self.records[record.id] = record }
    mutating func remove(_ id: PeerID) -> DeviceRecord? { self.records.removeValue(forKey: id) }

    /// Returns the device that gives way to a new one, if there are too many that are not stored. Devices that this machine has not reached
    /// itself are evicted first, then the one that was silent for longest. A device with an offer or a session stays.
    var surplus: PeerID? {
        let seen = self.records.values.filter { !$0.isStored }
        guard seen.count >= EarshotLimits.seenDevices else { return nil }
        let idle = seen.filter { !self.isBusy($0.id) }
        let forged = idle.filter { !$0.isReached }
        return (forged.isEmpty ? idle : forged).min { ($0.lastHeard ?? .first) < ($1.lastHeard ?? .first) }?.id
    }

    /// Whether the device has an offer or a session.
    func isBusy(_ id: PeerID) -> Bool {
        self.offers.values.contains { $0.sender.id == id } || self.sessions.values.contains { $0.sender.id == id }
    }

    // MARK: Offers

    /// The bytes that the pending offers count.
    var offerBytes: Int { self.offers.values.reduce(0) { $0 + $1.cost } }

    mutating func add(_ offer: PendingOffer, as id: InvitationID) { self.offers[id] = offer }
    mutating func accept(_ id: InvitationID, _ stage: PendingOffer.Stage, for acceptor: PendingOffer.Acceptor?) {
        self.offers[id]?.accept(stage, for: acceptor)
    }

    /// Removes an offer that is decided. If its space is still being reserved, that is released later.
    mutating func removeOffer(_ id: InvitationID) -> PendingOffer? {
        guard let offer = self.offers.removeValue(forKey: id) else { return nil }
        if offer.stage == .reserving { self.abandoned[id] = offer.files.map(\.resource) }
        return offer
    }

    /// Removes an accepted offer whose space is reserved, or whose text is on disk.
    mutating func takeOffer(_ id: InvitationID) -> PendingOffer? { self.offers.removeValue(forKey: id) }

    /// Returns the transfers of an offer that has ended while its space was being reserved.
    mutating func takeAbandoned(_ id: InvitationID) -> [ResourceID]? { self.abandoned.removeValue(forKey: id) }

    // MARK: Sessions

    mutating func add(_ session: DeviceSession) { self.sessions[session.id] = session }

    mutating func change<Result>(_ id: SessionID, _ body: (inout DeviceSession) -> Result) -> Result? {
        guard var session = self.sessions[id] else { return nil }
        defer { self.sessions[id] = session }
        return body(&session)
    }

    mutating func endSession(_ id: SessionID) -> DeviceSession? {
        guard let session = self.sessions.removeValue(forKey: id) else { return nil }
        for (resource, _) in session.moving { self.uploads[resource] = nil }
        return session
    }

    mutating func beginUpload(_ resource: ResourceID, of file: String, in session: SessionID) { self.uploads[resource] = (session, file) }
    mutating func endUpload(_ resource: ResourceID) -> (session: SessionID, file: String)? { self.uploads.removeValue(forKey: resource) }
    func session(of resource: ResourceID) -> SessionID? { self.uploads[resource]?.session }

    /// Returns the transfer that is received for a call.
    func upload(for call: CallID) -> ResourceID? {
        self.sessions.values.lazy.flatMap(\.moving).first { $0.call == call }?.resource
    }

    // MARK: Late refusals

    mutating func refuseLater(_ call: CallID) { self.late.append(call) }
    mutating func takeLate(_ call: CallID) -> Bool { self.late.remove(call) != nil }
    var lateCount: Int { self.late.count }

    // Tests look at this.
    var abandonedCount: Int { self.abandoned.count }

    /// Ends everything that waits. Returns the calls of devices, and those of users who have accepted an offer.
    mutating func dismiss() -> (devices: [CallID], users: [CallID]) {
        let users = self.offers.values.compactMap(\.acceptor?.call)
        let calls = self.offers.values.map(\.call) + self.late + self.sessions.values.flatMap { $0.moving.map(\.call) }
        self.offers = [:]
        self.late = []
        self.sessions = [:]
        self.uploads = [:]
        return (calls, users)
    }
}

/// The rounds of announcements.
struct AnnouncementState: Sendable {
    /// The number of datagrams that the present round has sent; `nil` between rounds.
    private(set) var sent: Int?
    private var lastWanted: MonotonicInstant?
    /// The places of announcements that are answered by a datagram if `register` fails there.
    private var unreached: OrderedSet<PeerAddress> = []

    mutating func answerIfUnreached(_ place: PeerAddress) { self.unreached.append(place) }
    var unreachedCount: Int { self.unreached.count }
    mutating func takeUnreached(_ place: PeerAddress) -> Bool { self.unreached.remove(place) != nil }

    /// Begins a round. Returns the wait before its first datagram; `nil` if a round is under way.
    mutating func begin() -> Duration? {
        guard self.sent == nil else { return nil }
        self.sent = 0
        return EarshotLimits.deviceAnnouncementDelays.first
    }

    /// Begins a round on a user's request, unless the last such round was a moment ago.
    mutating func beginWanted(at now: MonotonicInstant) -> Duration? {
        guard self.lastWanted.map({ now - $0 >= EarshotLimits.deviceAnnouncementInterval }) ?? true, let delay = self.begin() else {
            return nil
        }
        self.lastWanted = now
        return delay
    }

    /// Records that a datagram is sent. Returns the wait before the next one; `nil` after the last.
    mutating func step() -> Duration? {
        let count = (self.sent ?? 0) + 1
        guard count < EarshotLimits.deviceAnnouncementDelays.count else {
            self.sent = nil
            return nil
        }
        self.sent = count
        return EarshotLimits.deviceAnnouncementDelays[count]
    }
}

extension MonotonicInstant {
    /// An instant before every sign of life.
    fileprivate static var first: Self { Self(nanoseconds: .min) }
}
