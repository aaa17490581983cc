import EarshotWire
import FoundationEssentials
import NIOCore
import OrderedCollections

/// A sighting's key together with the backend that made it.
struct SightingKey: Sendable, Hashable {
    let backend: DiscoveryStatus.Backend
    let key: Sighting.Key
}

/// How reaching a peer again stands.
struct Redial {
    /// Attempts since the last success or the last news of the peer.
    var attempts = 0
    var isDialling = false
    /// How many of its addresses have been tried, where they are more than one attempt takes.
    var tried = 0
    var timer: Scheduled<Void>?
    /// Why the last attempt failed.
    var lastError: EarshotError?

    /// The pause before the next attempt.
    var delay: Duration {
        let delays = EarshotLimits.redialDelays
        return delays[min(self.attempts, delays.count - 1)]
    }
}

/// How a configured peer's dial stands; without an id it has no record until it has proven who it is.
struct ConfiguredDial {
    var redial = Redial()
    /// Who answered there last.
    var peer: PeerID?
    /// Where the dial under way, or the last one, went.
    var addresses: [PeerAddress] = []
}

/// All that the node knows of one peer.
struct PeerRecord {
    let id: PeerID
    var advertisedName: String?
    var provenName: String?
    /// What was kept by a decision; `nil` for a peer that nobody acted upon.
    var stored: StoredPeer?
    var sightings: OrderedDictionary<SightingKey, Sighting> = [:]
    var configured: [ConfiguredPeer] = []
    var connection: Connection?
    /// Whether this run of the node has had a proof of its key.
    var isProven = false
    var session: StoredSession? {
        didSet {
            guard self.session?.id != oldValue?.id else { return }
            self.endedTransfers = EndedTransfers()
            // What was refused before was of another session, and is over with it.
            self.hasSentMessage = false
            self.isRefusing = false
        }
    }
    /// The session with it that is on its way to the disk: no other may begin meanwhile.
    var agreement: Agreement?
    /// Whether what it asks is to be accepted by the settings when its turn at the store comes, and what was, until it is on disk.
    var isAcceptanceDue = false
    var acceptedInvitation: Invitation?
    /// How transfers of the session ended whose rows are gone, the latest ones.
    var endedTransfers = EndedTransfers()
    /// How often what it has offered or opened came to nothing.
    var vainOffers = VainOffers()
    /// Whether both sides have said, on this connection, that they hold the session.
    var isAttached = false
    /// Whether we have named the session on the connection that stands: the other side waits for that.
    var hasNamedSession = false
    /// Where a dial last succeeded: tried again when discovery has gone quiet.
    var lastGoodAddress: PeerAddress?
    var redial = Redial()
    var lossGrace: Scheduled<Void>?
    /// Whether `peer.found` was told, and how the peer looked when it was last told.
    var isAnnounced = false
    var published: Peer?
    /// Until when an authority of ours speaks for the certificate that it showed on its present or last connection.
    var vouchedUntil: Date?
    /// Looks at trust that ends by itself.
    var trustExpiry: Scheduled<Void>?
    /// The comparison of digits that was asked for.
    var comparison: Comparison?
    /// What of it was said on the present connection.
    var comparing: VerificationStateMachine?
    let firstSeen: Date
    var lastSeen: Date
    var outbox = Outbox()
    /// When what it has refused is tried again.
    var outboxRetry: Scheduled<Void>?
    /// When it was last tried again because a message was read there.
    var outboxResumed: MonotonicInstant?
    /// Whether `outboxRetry` is for that.
    var isResumingSoon = false
    /// Whether a reliable message of its has come on this connection in this session: the first begins without a refusal.
    var hasSentMessage = false
    /// Whether a message of its was refused for its session: none may overtake it until one that is resumed, or the next session.
    var isRefusing = false

    init(id: PeerID, now: Date) {
        self.id = id
        self.firstSeen = now
        self.lastSeen = now
    }

    /// What was decided by a person, else by an authority; of a key whose digits differed no authority is believed.
    var trust: Trust {
        guard self.decidedTrust == .unknown, self.vouchedUntil != nil, self.stored?.verified != .mismatched else {
            return self.decidedTrust
        }
        return .trusted
    }

    /// What a person decided.
    var decidedTrust: Trust { self.stored?.trust ?? .unknown }

    var trustSource: TrustSource? {
        if self.decidedTrust != .unknown { return .person }
        return self.trust == .trusted ? .authority : nil
    }

    var trustExpiresAt: Date? { self.trustSource == .authority ? self.vouchedUntil : self.stored?.trustedUntil }

    /// Once a peer has proven its key, the name that it gave there replaces the advertised one.
    var name: String { self.provenName ?? self.advertisedName ?? self.id.description }

    /// Whether its key has ever been proven to this machine, in this run or by what was kept.
    var hasEverProven: Bool { self.isProven || self.stored?.isProven == true }

    /// What it can be called by.
    var namingEntry: PeerNaming.Entry {
        let isKnown = self.stored != nil || self.session != nil || self.trust == .trusted
        return PeerNaming.Entry(
            id: self.id, name: self.name, isConnected: self.connection != nil, isProven: self.isProven, isKnown: isKnown,
            hasSureID: isKnown || self.hasEverProven || !self.configured.isEmpty, trust: self.trust)
    }

    var isNearby: Bool { !self.sightings.isEmpty || self.connection != nil || self.lossGrace != nil }

    /// Whether anything but a passing connection speaks for keeping the row.
    var isKept: Bool { self.stored != nil || self.session != nil || !self.configured.isEmpty }

    /// Whether it is listed for nothing but that discovery sees it, or has just seen it.
    var isDiscoveredOnly: Bool { !self.isKept && self.connection == nil && (!self.sightings.isEmpty || self.lossGrace != nil) }

    /// The addresses at which discovery saw it, IPv4 before IPv6, with whether it came in on loopback; at most
    /// `EarshotLimits.addressesPerPeer`, of which every sighting has its share.
    var sightedAddresses: [(address: PeerAddress, isLoopback: Bool)] {
        var seen: Set<PeerAddress> = []
        var all: [(PeerAddress, Bool)] = []
        let most = self.sightings.values.reduce(0) { max($0, $1.addresses.count) }
        for index in 0..<most {
            for sighting in self.sightings.values where index < sighting.addresses.count && all.count < EarshotLimits.addressesPerPeer {
                let address = PeerAddress(host: sighting.addresses[index], interface: sighting.interfaceName, port: sighting.port)
                if let address, seen.insert(address).inserted { all.append((address, sighting.isLoopback)) }
            }
        }
        let isIPv6 = { (address: PeerAddress) in address.host.utf8.contains(UInt8(ascii: ":")) }
        return (all.filter { !isIPv6($0.0) } + all.filter { isIPv6($0.0) }).map { (address: $0.0, isLoopback: $0.1) }
    }

    /// Which of these one attempt to reach it tries: some of them, each time the next ones, and the one where it was last every time, first
    /// where it is still seen there. So whoever advertises many under its id delays it and no more.
    mutating func nextAddresses(of addresses: [PeerAddress]) -> [PeerAddress] {
        let others = addresses.filter { $0 != self.lastGoodAddress }
        let room = EarshotLimits.addressesPerDial - (self.lastGoodAddress == nil ? 0 : 1)
        var next = others
        if others.count > room {
            let start = self.redial.tried % others.count
            self.redial.tried = (start + room) % others.count
            next = Array((others[start...] + others[..<start]).prefix(room))
        }
        guard let last = self.lastGoodAddress else { return next }
        return others.count < addresses.count ? [last] + next : next + [last]
    }

    /// Notes where it was seen; of too many the oldest goes, whose key is given.
    mutating func note(_ sighting: Sighting, _ key: SightingKey) -> SightingKey? {
        self.sightings[key] = sighting
        guard self.sightings.count > EarshotLimits.sightingsPerPeer else { return nil }
        return self.sightings.removeFirst().key
    }

    func peer(isInviting: Bool, nameConflict: PeerID?) -> Peer {
        let state: MemberState =
            if self.session != nil, self.isAttached { .connected } else if self.redial.isDialling && (self.session != nil || isInviting) {
                .connecting
            } else { .notConnected }
        var sources = Set(
            self.sightings.keys.map { key -> Peer.Source in
                switch key.backend {
                case .avahi: .avahi
                case .embedded: .embedded
                case .none: .configured
                }
            })
        if !self.configured.isEmpty { sources.insert(.configured) }
        if self.connection?.isInitiator == false { sources.insert(.incoming) }
        if self.stored != nil { sources.insert(.store) }
        var addresses = self.sightedAddresses.map(\.address.description)
        if addresses.isEmpty, let address = self.lastGoodAddress { addresses.append(address.description) }
        for configured in self.configured {
            let text = ConfiguredPeerAddress.text(configured)
            if !addresses.contains(text) { addresses.append(text) }
        }
        return Peer(
            id: self.id, name: self.name, presence: self.isNearby ? .nearby : .away, state: state, trust: self.trust,
            protection: self.connection?.protection, proven: self.hasEverProven, addresses: addresses,
            discoveryInfo: self.discoveryInfo, sources: sources.sorted(), error: self.failure, trustSource: self.trustSource,
            trustExpiresAt: self.trustExpiresAt, verified: self.stored?.verified, nameConflict: nameConflict, firstSeen: self.firstSeen,
            lastSeen: self.lastSeen)
    }

    /// That a peer of discovery's is away needs no words; that one is which the settings name does, and that somebody else answers for it.
    var failure: Peer.Failure? {
        guard self.connection == nil, let error = self.redial.lastError, error.isFinalForDial || !self.configured.isEmpty
        else { return nil }
        return Peer.Failure(code: error.code, message: error.message)
    }

    private var discoveryInfo: [String: String] {
        guard let sighting = self.sightings.values.last else { return [:] }
        return DiscoveryInfo.read(sighting.txt, instanceName: sighting.key.instanceName)?.pairs ?? [:]
    }

    /// A session with this peer as others see it.
    func session(_ session: StoredSession) -> Session {
        let state: MemberState = self.isAttached ? .connected : self.redial.isDialling ? .connecting : .notConnected
        return Session(
            id: session.id,
            members: [Session.Member(peerID: self.id, name: self.name, state: state, protection: self.connection?.protection)],
            createdAt: session.createdAt)
    }

    /// The session once it is over: who it was with, not connected, whatever else the connection is still good for.
    func endedSession(_ session: StoredSession) -> Session {
        Session(
            id: session.id, members: [Session.Member(peerID: self.id, name: self.name, state: .notConnected, protection: nil)],
            createdAt: session.createdAt)
    }
}

/// How a configured peer's address is listed: without its id.
enum ConfiguredPeerAddress {
    static func text(_ peer: ConfiguredPeer) -> String {
        peer.host.contains(":") ? "[\(peer.host)]:\(peer.port)" : "\(peer.host):\(peer.port)"
    }
}

extension Peer {
    /// Whether a person would see no difference: `peer.changed` is not told for a later `lastSeen` alone.
    func showsSame(as other: Peer) -> Bool {
        self.name == other.name && self.presence == other.presence && self.state == other.state && self.trust == other.trust
            && self.protection == other.protection && self.proven == other.proven && self.addresses == other.addresses
            && self.discoveryInfo == other.discoveryInfo && self.sources == other.sources && self.error == other.error
            && self.trustSource == other.trustSource && self.trustExpiresAt == other.trustExpiresAt && self.verified == other.verified
            && self.nameConflict == other.nameConflict
    }
}
