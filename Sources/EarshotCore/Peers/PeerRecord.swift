import EarshotWire
import OrderedCollections

/// The core's knowledge of one peer, divided by concern. Only the concern itself changes its part.
///
/// A value whose copies share their storage until one of them changes. Records are read many times per message, and copying a whole record
/// would retain and release all its references.
struct PeerRecord: Sendable {
    let id: PeerID
    private var storage: Storage

    init(id: PeerID, at now: WallTime) {
        self.id = id
        self.storage = Storage(Concerns(presence: Presence(at: now)))
    }

    /// Creates the record of a stored peer.
    init(_ stored: StoredPeer) {
        self.id = stored.id
        self.storage = Storage(Concerns(presence: Presence(stored)))
        self.standing.keep(stored)
        if stored.isProven { self.link.load(name: stored.name) }
    }

    private struct Concerns: Sendable {
        var presence: Presence
        var reach = Reachability()
        var standing = TrustState()
        var link = LinkState()
        var session = SessionState()
        var comparing = ComparisonState()
        var groups = GroupTies()
        var vainOffers = VainOffers()
    }

    /// Unchecked for concurrency and exclusivity. The storage is changed only through a record that holds the sole reference to it, and so
    /// by one owner at a time, like any value.
    private final class Storage: @unchecked Sendable {
        @exclusivity(unchecked) var concerns: Concerns

        init(_ concerns: Concerns) { self.concerns = concerns }
    }

    private var concerns: Concerns {
        _read { yield self.storage.concerns }
        _modify {
            if !isKnownUniquelyReferenced(&self.storage) { self.storage = Storage(self.storage.concerns) }
            yield &self.storage.concerns
        }
    }

    // Written out: with key paths (`@dynamicMemberLookup`), the simulator does half as many steps a second.

    var presence: Presence {
        _read { yield self.concerns.presence }
        _modify { yield &self.concerns.presence }
    }

    var reach: Reachability {
        _read { yield self.concerns.reach }
        _modify { yield &self.concerns.reach }
    }

    var standing: TrustState {
        _read { yield self.concerns.standing }
        _modify { yield &self.concerns.standing }
    }

    var link: LinkState {
        _read { yield self.concerns.link }
        _modify { yield &self.concerns.link }
    }

    var session: SessionState {
        _read { yield self.concerns.session }
        _modify { yield &self.concerns.session }
    }

    var comparing: ComparisonState {
        _read { yield self.concerns.comparing }
        _modify { yield &self.concerns.comparing }
    }

    var groups: GroupTies {
        _read { yield self.concerns.groups }
        _modify { yield &self.concerns.groups }
    }

    /// The count of the peer's recent offers and streams that came to nothing.
    var vainOffers: VainOffers {
        _read { yield self.concerns.vainOffers }
        _modify { yield &self.concerns.vainOffers }
    }

    var trust: Trust { self.standing.trust }
    var connection: LinkID? { self.link.current?.id }
    var sessionID: SessionID? { self.session.session?.id }
    var isAttached: Bool { self.session.isAttached }

    /// The name that this machine shows: the alias that a user here has given, else the peer's own.
    var name: String { self.standing.stored?.alias?.description ?? self.ownName }

    /// The peer's display name. When a peer has proven its key, the name that it gave then replaces the advertised one.
    var ownName: String { self.link.provenName ?? self.presence.advertisedName ?? self.id.description }

    /// Whether the peer has ever proven its key to this machine, in this run or according to the store.
    var hasEverProven: Bool { self.link.isProven || self.standing.stored?.isProven == true }

    var facts: PeerFacts {
        PeerFacts(
            id: self.id, name: self.name, trust: self.trust, session: self.sessionID, link: self.connection, isAttached: self.isAttached)
    }

    /// The properties by which a user can name the peer.
    var namingEntry: PeerNaming.Entry {
        let isKnown = self.standing.stored != nil || self.sessionID != nil || self.trust == .trusted
        return PeerNaming.Entry(
            id: self.id, name: self.ownName, alias: self.standing.stored?.alias?.description, isConnected: self.connection != nil,
            isProven: self.link.isProven, isKnown: isKnown,
            hasSureID: isKnown || self.hasEverProven || !self.reach.configured.isEmpty, trust: self.trust)
    }

    var isNearby: Bool {
        !self.presence.sightings.isEmpty || self.connection != nil || self.presence.isInGrace || self.link.isBeingReplaced
    }

    /// Whether the row is worth keeping for more than a passing connection.
    var isKept: Bool { self.standing.stored != nil || self.sessionID != nil || !self.reach.configured.isEmpty }

    /// Whether the peer is listed only because discovery sees it, or has just seen it.
    var isDiscoveredOnly: Bool {
        !self.isKept && self.groups.isEmpty && self.connection == nil && (!self.presence.sightings.isEmpty || self.presence.isInGrace)
    }

    /// The reason why the peer could not be reached. Reported only if the settings name the peer, or if dialling again would fail in the
    /// same way: a peer that only discovery knows is often simply away.
    var failure: Peer.Failure? {
        guard self.connection == nil, let error = self.reach.lastError, error.isFinalForDial || !self.reach.configured.isEmpty else {
            return nil
        }
        return Peer.Failure(code: error.code, message: error.message)
    }

    func peer(isInviting: Bool, nameConflict: PeerID?) -> Peer {
        let state: MemberState =
            if self.sessionID != nil, self.isAttached { .connected } else if self.reach.isDialling && (self.sessionID != nil || isInviting)
            { .connecting } else { .notConnected }
        var addresses = self.presence.sightedAddresses.map(\.address.description)
        if addresses.isEmpty, let address = self.reach.lastGoodAddress { addresses.append(address.description) }
        for configured in self.reach.configured where !addresses.contains(configured.address) { addresses.append(configured.address) }
        return Peer(
            id: self.id, name: self.name, displayName: self.standing.stored?.alias == nil ? nil : self.ownName,
            presence: self.isNearby ? .nearby : .away, state: state, trust: self.trust,
            protection: self.link.current?.facts.protection, proven: self.hasEverProven, addresses: addresses,
            discoveryInfo: self.presence.discoveryInfo, sources: self.sources, error: self.failure, trustSource: self.standing.source,
            trustEnd: self.standing.end, verified: self.standing.stored?.verified, nameConflict: nameConflict,
            firstSighting: self.presence.firstSeen, lastSign: self.presence.lastSeen)
    }

    private var sources: [Peer.Source] {
        var sources: OrderedSet<Peer.Source> = []
        for key in self.presence.sightings.keys {
            switch key.backend {
            case .avahi: sources.append(.avahi)
            case .embedded: sources.append(.embedded)
            case .none: sources.append(.configured)
            }
        }
        if !self.reach.configured.isEmpty { sources.append(.configured) }
        if self.link.current?.facts.isInitiator == false { sources.append(.incoming) }
        if self.standing.stored != nil { sources.append(.store) }
        return sources.sorted()
    }

    /// Returns a session with this peer in its public form.
    func session(_ session: StoredSession) -> Session {
        let state: MemberState = self.isAttached ? .connected : self.reach.isDialling ? .connecting : .notConnected
        return self.session(session, state, self.link.current?.facts.protection)
    }

    /// Returns a session after its end: its peer is not connected, even if the connection remains for other uses.
    func endedSession(_ session: StoredSession) -> Session { self.session(session, .notConnected, nil) }

    private func session(_ session: StoredSession, _ state: MemberState, _ protection: Protection?) -> Session {
        Session(
            id: session.id, members: [Session.Member(peerID: self.id, name: self.name, state: state, protection: protection)],
            created: session.createdAt)
    }
}

/// The control connection to a peer, and the facts that were proven on such a connection.
struct LinkState: Sendable {
    struct Current: Sendable {
        let id: LinkID
        let facts: LinkFacts
        let provenAt: MonotonicInstant
    }

    private(set) var current: Current?
    private(set) var provenName: String?
    /// Whether the peer has proven its key in this run.
    private(set) var isProven = false
    /// Whether a newer connection is about to replace the one that has just ended.
    private(set) var isBeingReplaced = false

    mutating func load(name: String) { self.provenName = name }
    mutating func proven() { self.isProven = true }

    mutating func stand(_ current: Current) {
        self.current = current
        self.isBeingReplaced = false
        self.isProven = true
    }

    mutating func drop(isBeingReplaced: Bool) {
        self.current = nil
        self.isBeingReplaced = isBeingReplaced
    }

    /// Sets the proven name. Returns `false` if the name was the same before.
    mutating func rename(_ name: String) -> Bool {
        defer { self.provenName = name }
        return self.provenName?.utf8.elementsEqual(name.utf8) != true
    }
}

extension Peer {
    /// Whether a user would see no difference: `peer.changed` is not published for a later `lastSeen` alone.
    func showsSame(as other: Peer) -> Bool {
        self.name.utf8.elementsEqual(other.name.utf8) && self.presence == other.presence && self.state == other.state
            && self.trust == other.trust
            && self.protection == other.protection && self.proven == other.proven && self.addresses == other.addresses
            && self.discoveryInfo == other.discoveryInfo && self.sources == other.sources && self.error == other.error
            && self.trustSource == other.trustSource && self.trustEnd == other.trustEnd && self.verified == other.verified
            && self.nameConflict == other.nameConflict
    }
}
