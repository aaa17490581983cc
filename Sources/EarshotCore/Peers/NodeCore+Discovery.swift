import EarshotWire
import OrderedCollections

/// Discovery's events turned into rows: one row per peer, over all interfaces, protocols and backends.
extension NodeCore {
    mutating func discoveryReported(_ event: DiscoveryInput) {
        switch event {
        case .found(let backend, let seen): self.sighted(seen, by: backend)
        case .lost(let backend, let key): self.sightingLost(SightingKey(backend: backend, key: key))
        case .reset(let backend):
            let keys = self.records.values.flatMap { $0.presence.keys.filter { $0.backend == backend } }
            for key in keys { self.sightingLost(key) }
            self.identityCopies.lose(backend)
        case .status(let status):
            if self.discovered.note(status) { self.publish(.discoveryChanged(status)) }
        case .advertised(let instanceName): self.discovered.advertised(as: instanceName)
        }
    }

    private mutating func sighted(_ seen: SeenAddresses, by backend: DiscoveryStatus.Backend) {
        let sighting = seen.sighting
        let key = SightingKey(backend: backend, key: sighting.key)
        guard let info = DiscoveryInfo.read(sighting.txt, instanceName: sighting.key.instanceName) else {
            return self.sightingLost(key)
        }
        if let previous = self.discovered.peer(at: key), previous != info.id { self.sightingLost(key) }
        guard info.id != self.id else { return self.sightedOwnIdentity(seen, key, name: info.name) }
        self.identityCopies.lose(key)
        guard self.records[info.id] != nil || self.hasRoomForDiscovered() else { return }
        self.makeRecord(info.id)
        if let oldest = self.records[info.id]?.presence.note(seen, key, name: info.name, at: self.now.wall) { self.discovered.lost(oldest) }
        self.deadlines.cancel(.grace(info.id))
        let hasFailed = self.records[info.id].map { $0.reach.attempts > 0 } ?? false
        self.records[info.id]?.reach.forgetFailures()
        self.discovered.sighted(info.id, at: key)
        self.publishPeer(info.id)
        self.spread(.withinReach, of: info.id)
        // Members of a group that appear at the same time must not all dial each other at once.
        guard let record = self.records[info.id], self.isWantedForGroupsAlone(record) else {
            return self.ensureConnection(info.id, now: true)
        }
        if hasFailed { self.cancelDial(info.id) }
        self.ensureConnection(info.id)
    }

    /// Warns the administrator that another machine has this node's identity. A sighting at one of this machine's own addresses is its own
    /// advertisement, which a repeater or another responder sent back.
    private mutating func sightedOwnIdentity(_ seen: SeenAddresses, _ key: SightingKey, name: String) {
        guard !seen.isThisMachine, !seen.addresses.isEmpty else { return self.identityCopies.lose(key) }
        guard self.identityCopies.note(seen, key) else { return }
        let addresses = seen.addresses.map(\.description).joined(separator: ", ")
        self.log(
            Notice(
                .warning, "another machine advertises this machine's identity; if its disk is a copy, give one of the two a new identity",
                ["name": name, "addresses": addresses]))
    }

    /// Whether there is room to list another peer that is known from discovery alone.
    private mutating func hasRoomForDiscovered() -> Bool {
        let admission = self.discovered.admit()
        if admission == .newlyFull {
            self.log(Notice(.warning, "too many peers are advertised; more are not listed", ["limit": EarshotLimits.discoveredPeers]))
        }
        return admission == .admitted
    }

    private mutating func sightingLost(_ key: SightingKey) {
        self.identityCopies.lose(key)
        guard let id = self.discovered.lost(key), self.records[id] != nil else { return }
        let isElsewhere = self.records[id]?.presence.lose(key) ?? false
        guard let record = self.records[id] else { return }
        if record.presence.sightings.isEmpty { self.beginGrace(id) }
        if let before = record.presence.published, !before.name.utf8.elementsEqual(record.name.utf8) { self.publishPeer(id) }
        if isElsewhere { self.ensureConnection(id) }
    }

    /// Starts the grace period, in which a lost peer stays listed.
    mutating func beginGrace(_ id: PeerID) {
        guard self.records[id]?.presence.isInGrace == false else { return }
        self.records[id]?.presence.beginGrace()
        self.set(.grace(id), after: EarshotLimits.lossGrace)
    }

    mutating func graceEnded(_ id: PeerID) {
        guard self.records[id]?.presence.isInGrace == true else { return }
        self.records[id]?.presence.endGrace()
        self.publishPeer(id)
    }

    // MARK: Rows

    /// Creates a peer's row if there is none.
    mutating func makeRecord(_ id: PeerID, at time: WallTime? = nil) {
        if self.records[id] == nil { self.records.add(PeerRecord(id: id, at: time ?? self.now.wall), for: id) }
    }

    /// Returns a peer in its public form.
    func snapshot(_ record: PeerRecord) -> Peer {
        record.peer(isInviting: self.isInviting(record.id), nameConflict: self.namesake(of: record))
    }

    /// Publishes a peer's changes since it was last published. Drops the row of a peer that is gone and has no state worth keeping.
    mutating func publishPeer(_ id: PeerID) {
        guard let record = self.records[id] else { return }
        // A peer that has asked for something may still be answered while it is away. A peer that a user waits for may come back.
        let isAsking = Direction.incoming.isPending(with: id, in: self.invitations) || record.comparing.state == .waiting
        guard record.isNearby || record.isKept || isAsking else {
            // A member of a group stays in the group's list. Among peers it counts as a stranger, which is listed only while it is nearby.
            if record.groups.isEmpty { self.forgetPeer(record) } else { self.unlistPeer(record) }
            return
        }
        self.discovered.list(id, isUnknown: record.isDiscoveredOnly)
        self.noteNames(record)
        let peer = self.snapshot(record)
        let before = record.presence.published
        guard before.map({ !$0.showsSame(as: peer) }) ?? true else { return }
        self.records[id]?.presence.publish(peer)
        self.publishNamesakes(before: before, after: peer)
        // A blocked peer causes no events: it could cause any number of them.
        guard record.trust != .blocked || before?.trust != .blocked else { return }
        switch (before?.presence, peer.presence) {
        case (.nearby, .away): self.publish(.peerLost(peer))
        case (nil, .nearby), (.away, .nearby): self.publish(.peerFound(peer))
        case (nil, .away): if !record.presence.isAnnounced { self.publish(.peerChanged(peer)) }
        case (.nearby, .nearby), (.away, .away): self.publish(.peerChanged(peer))
        }
    }

    private mutating func forgetPeer(_ record: PeerRecord) {
        let id = record.id
        _ = self.records.remove(id)
        for key in record.presence.keys { self.discovered.lost(key) }
        for deadline in [Deadline.grace(id), .redial(id), .comparison(id), .trust(id)] { self.deadlines.cancel(deadline) }
        self.publishGone(record)
        self.spread(.forgotten, of: id)
    }

    /// Stops listing a peer that is gone, and keeps its row.
    private mutating func unlistPeer(_ record: PeerRecord) {
        guard record.presence.isAnnounced else { return }
        self.records[record.id]?.presence.withdraw()
        self.publishGone(record)
    }

    private mutating func publishGone(_ record: PeerRecord) {
        let id = record.id
        self.names.forgetStranger(besides: id)
        if let name = record.presence.published?.name { self.names.remove(id, named: name) }
        self.discovered.list(id, isUnknown: false)
        if record.presence.isAnnounced { self.publish(.peerLost(self.snapshot(record))) }
        self.publishNamesakes(before: record.presence.published, after: nil)
    }

    /// Republishes both of two known peers whose names begin or cease to be equal.
    private mutating func publishNamesakes(before: Peer?, after: Peer?) {
        guard before?.nameConflict != after?.nameConflict,
            before?.sources.contains(.store) == true || after?.sources.contains(.store) == true
        else { return }
        for other in [before?.nameConflict, after?.nameConflict] {
            if let other { self.publishPeer(other) }
        }
    }

    func isInviting(_ id: PeerID) -> Bool { self.invitations.pending(with: id, .outgoing) != nil }

    /// Whether messages to a peer without a session have reason to wait for one.
    func isJoining(_ id: PeerID) -> Bool { self.isInviting(id) || self.records[id]?.session.isAcceptanceAwaited == true }
}
