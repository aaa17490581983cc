import EarshotWire

/// A LocalSend device, known by the certificate that it has shown in a TLS handshake.
struct DeviceRecord: Sendable {
    let id: PeerID
    /// The name that the device shows: a label.
    private(set) var ownName: String
    /// The address and port at which the device listens, as far as this machine knows.
    private(set) var place: PeerAddress?
    /// Whether the device was found at that place by this machine's own request. Anyone can claim a port.
    private(set) var isReached = false
    /// Whether the device has shown its certificate in this run.
    private(set) var isProven = false
    private(set) var isNearby = false
    let firstSeen: WallTime
    private(set) var lastSeen: WallTime
    /// When the device last gave a sign of life.
    private(set) var lastHeard: MonotonicInstant?
    /// The trust in the device, and its stored row.
    var standing = TrustState()
    /// The last published state.
    private(set) var published: Peer?

    init(id: PeerID, at now: WallTime) {
        self.id = id
        self.ownName = id.description
        self.firstSeen = now
        self.lastSeen = now
    }

    /// Creates the record of a stored device.
    init(_ stored: StoredPeer) {
        self.id = stored.id
        self.ownName = stored.name
        self.firstSeen = stored.firstSeen
        self.lastSeen = stored.lastSeen
        self.standing.keep(stored)
    }

    var trust: Trust { self.standing.trust }

    /// The name that this machine shows: the alias that a user here has given, else the device's own.
    var name: String { self.standing.stored?.alias?.description ?? self.ownName }

    /// Whether a user has decided about the device.
    var isStored: Bool { self.standing.stored != nil }

    /// The row that a decision would store now.
    var row: StoredPeer {
        StoredPeer(
            id: self.id, name: self.ownName, alias: self.standing.stored?.alias, trust: self.standing.decided, isTLSPinned: false,
            isProven: self.isProven || self.standing.stored?.isProven == true, trustedUntil: self.standing.stored?.trustedUntil,
            firstSeen: self.firstSeen, lastSeen: self.lastSeen)
    }

    /// Records that the device has shown its certificate and described itself. `place` is `nil` if it does not say where it listens.
    mutating func heard(_ info: DeviceInfo, at place: PeerAddress?, isReached: Bool, _ now: Now) {
        if !info.alias.isEmpty { self.ownName = info.alias }
        if let place, isReached || place != self.place {
            self.place = place
            self.isReached = isReached
        }
        self.isProven = true
        self.isNearby = true
        self.lastSeen = now.wall
        self.lastHeard = now.monotonic
    }

    /// Updates the stored row of a device that has shown its certificate or has another name. Returns `false` if nothing changes.
    mutating func noteOnDisk() -> Bool {
        let isNamed = self.standing.noteName(self.ownName)
        return self.standing.noteProven() || isNamed
    }

    mutating func publish(_ peer: Peer) { self.published = peer }

    mutating func lost() {
        self.isNearby = false
        self.isReached = false
    }

    /// The device in its public form.
    var peer: Peer {
        Peer(
            id: self.id, name: self.name, displayName: self.standing.stored?.alias == nil ? nil : self.ownName,
            presence: self.isNearby ? .nearby : .away, state: .notConnected, trust: self.trust, protection: nil,
            proven: self.isProven || self.standing.stored?.isProven == true, addresses: self.place.map { [$0.description] } ?? [],
            discoveryInfo: [:], sources: (self.isNearby ? [.localsend] : []) + (self.isStored ? [.store] : []),
            trustSource: self.standing.source, trustEnd: self.standing.end, firstSighting: self.firstSeen, lastSign: self.lastSeen)
    }

    /// The properties by which a user can name the device.
    var namingEntry: PeerNaming.Entry {
        PeerNaming.Entry(
            id: self.id, name: self.ownName, alias: self.standing.stored?.alias?.description, isConnected: false, isProven: self.isProven,
            isKnown: self.isStored, hasSureID: true, trust: self.trust)
    }
}
