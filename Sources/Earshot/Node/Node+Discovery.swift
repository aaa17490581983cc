import EarshotWire
import FoundationEssentials
import Logging
import NIOCore
import OrderedCollections

/// Discovery's news become rows: one a peer, over all interfaces, protocols and backends.
extension Node {
    func handleDiscovery(_ event: DiscoveryEvent) {
        switch event {
        case .found(let backend, let sighting): self.sighted(sighting, by: backend)
        case .lost(let backend, let key): self.sightingLost(SightingKey(backend: backend, key: key))
        case .reset(let backend):
            for key in self.sightedPeers.keys where key.backend == backend { self.sightingLost(key) }
        case .status(let status):
            guard status != self.discoveryStatus else { return }
            self.discoveryStatus = status
            self.tell(.discoveryChanged(status))
        case .advertised(let instanceName): self.instanceName = instanceName
        }
    }

    private func sighted(_ sighting: Sighting, by backend: DiscoveryStatus.Backend) {
        let key = SightingKey(backend: backend, key: sighting.key)
        guard let info = DiscoveryInfo.read(sighting.txt, instanceName: sighting.key.instanceName) else {
            self.sightingLost(key)
            return
        }
        if let previous = self.sightedPeers[key], previous != info.id { self.sightingLost(key) }
        guard info.id != self.id else { return }
        guard self.records[info.id] != nil || self.hasRoomForDiscovered() else { return }
        var record = self.records[info.id] ?? PeerRecord(id: info.id, now: self.now)
        // One that was renamed is seen under both instances for a while, and the old one may still be reported anew: it says nothing new.
        if record.sightings[key]?.txt != sighting.txt { record.advertisedName = info.name }
        if let oldest = record.note(sighting, key) { self.sightedPeers.removeValue(forKey: oldest) }
        record.lastSeen = self.now
        record.lossGrace?.cancel()
        record.lossGrace = nil
        record.redial.attempts = 0
        self.records[info.id] = record
        self.sightedPeers[key] = info.id
        self.publishPeer(info.id)
        self.inviteForQueue(info.id)
        self.ensureConnection(info.id, now: true)
    }

    /// Whether one more peer that nobody has to do with may be listed; those that we deal with are listed in any case.
    private func hasRoomForDiscovered() -> Bool {
        let isFull = self.discoveredOnly.count >= EarshotLimits.discoveredPeers
        // Once, until there is room again: whoever forges thousands shall not fill the log too.
        if isFull, !self.isDiscoveryFull {
            self.logger.warning(
                "too many peers are advertised; more are not listed", metadata: ["limit": "\(EarshotLimits.discoveredPeers)"])
        }
        self.isDiscoveryFull = isFull
        return !isFull
    }

    private func sightingLost(_ key: SightingKey) {
        guard let id = self.sightedPeers.removeValue(forKey: key), var record = self.records[id] else { return }
        record.sightings.removeValue(forKey: key)
        if let left = record.sightings.values.last, let info = DiscoveryInfo.read(left.txt, instanceName: left.key.instanceName) {
            record.advertisedName = info.name
        }
        if record.sightings.isEmpty, record.lossGrace == nil {
            record.lossGrace = self.schedule(.lossGrace(id), after: EarshotLimits.lossGrace)
        }
        self.records[id] = record
        if let before = record.published, before.name != record.name { self.publishPeer(id) }
    }

    func lossGraceEnded(_ id: PeerID) {
        guard self.records[id]?.lossGrace != nil else { return }
        self.records[id]?.lossGrace = nil
        self.publishPeer(id)
    }

    // MARK: Telling

    func tell(_ kind: NodeEvent.Kind, cost: Int? = nil, isLive: Bool = false) {
        self.counters.count(kind)
        self.events.append(kind, at: self.now, cost: cost ?? Self.eventCost(kind), isLive: isLive)
    }

    /// The same for many things that happened together.
    func tell(_ kinds: [NodeEvent.Kind], cost: (NodeEvent.Kind) -> Int = Node.eventCost, isLive: Bool = false) {
        guard !kinds.isEmpty else { return }
        for kind in kinds { self.counters.count(kind) }
        self.events.append(kinds, at: self.now, cost: cost, isLive: isLive)
    }

    private func tell(_ kind: (Peer) -> NodeEvent.Kind, _ peer: Peer) {
        self.tell(kind(peer), cost: Self.eventCost(of: peer))
    }

    /// What a peer takes in memory while an event has it, about: it says of itself what it likes.
    static func eventCost(of peer: Peer) -> Int {
        512 + peer.addresses.reduce(0) { $0 + 64 + $1.utf8.count }
            + peer.discoveryInfo.reduce(0) { $0 + 64 + $1.key.utf8.count + $1.value.utf8.count }
    }

    func isInviting(_ id: PeerID) -> Bool {
        self.pendingInvitation(with: id, .outgoing) != nil
    }

    func snapshot(_ record: PeerRecord) -> Peer {
        record.peer(isInviting: self.isInviting(record.id), nameConflict: self.namesake(of: record))
    }

    /// Of two known peers with one name both are told anew when that begins and when it ends.
    private func publishNamesakes(before: Peer?, after: Peer?) {
        guard before?.nameConflict != after?.nameConflict,
            before?.sources.contains(.store) == true || after?.sources.contains(.store) == true
        else { return }
        for other in [before?.nameConflict, after?.nameConflict] {
            if let other { self.publishPeer(other) }
        }
    }

    /// Tells what has become of a peer since it was last told, and forgets one that is gone and that nobody acted upon.
    func publishPeer(_ id: PeerID) {
        guard var record = self.records[id] else { return }
        // Whoever has asked may be answered, though it is away meanwhile; and whom a person waits for may come back.
        let isAsking = self.pendingInvitation(with: id, .incoming) != nil || record.comparison?.state == .waiting
        guard record.isNearby || record.isKept || isAsking else {
            self.records.removeValue(forKey: id)
            self.impostors[id] = nil
            if let name = record.published?.name { self.forget(id, named: name) }
            self.discoveredOnly.remove(id)
            if record.isAnnounced { self.tell(NodeEvent.Kind.peerLost, self.snapshot(record)) }
            self.publishNamesakes(before: record.published, after: nil)
            return
        }
        if record.isDiscoveredOnly { self.discoveredOnly.insert(id) } else { self.discoveredOnly.remove(id) }
        self.noteNames(record)
        let peer = self.snapshot(record)
        let before = record.published
        guard before.map({ !$0.showsSame(as: peer) }) ?? true else { return }
        record.published = peer
        let wasAnnounced = record.isAnnounced
        record.isAnnounced = true
        self.records[id] = record
        self.publishNamesakes(before: before, after: peer)
        // A blocked peer makes no events: it would see to it that there are many.
        guard record.trust != .blocked || before?.trust != .blocked else { return }
        switch (before?.presence, peer.presence) {
        case (.nearby, .away): self.tell(NodeEvent.Kind.peerLost, peer)
        case (nil, .nearby), (.away, .nearby): self.tell(NodeEvent.Kind.peerFound, peer)
        case (nil, .away): if !wasAnnounced { self.tell(NodeEvent.Kind.peerChanged, peer) }
        case (.nearby, .nearby), (.away, .away): self.tell(NodeEvent.Kind.peerChanged, peer)
        }
    }
}
