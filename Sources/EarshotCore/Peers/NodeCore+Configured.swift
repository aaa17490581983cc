import EarshotWire
import OrderedCollections

/// Peers that the settings name. They are dialled without discovery, and in addition to it, as long as the settings name them.
///
/// A peer that is named with its id has a row from the start. A peer that is named without its id gets a row when it has answered there
/// with a proven key. Several addresses of one key share one row.
extension NodeCore {
    /// Starts and stops dialling according to the settings.
    mutating func useConfiguredPeers(_ wanted: [ConfiguredPeer]) {
        for peer in self.configuredDials.keys where !wanted.contains(peer) { self.removeConfigured(peer) }
        for peer in wanted { self.addConfigured(peer) }
    }

    private mutating func addConfigured(_ peer: ConfiguredPeer) {
        guard self.configuredDials[peer] == nil, peer.id != self.id else { return }
        self.configuredDials.add(ConfiguredDial(), for: peer)
        if let id = peer.id { self.note(peer, of: id) }
        self.dialConfigured(peer)
    }

    /// Stops dialling a peer. A connection that nothing else needs is closed when it is idle.
    private mutating func removeConfigured(_ peer: ConfiguredPeer) {
        guard let dial = self.configuredDials.remove(peer) else { return }
        self.deadlines.cancel(.redialConfigured(peer))
        if let id = dial.peer ?? peer.id { self.forget(peer, of: id) }
    }

    /// Returns the peer at an address of the settings, if known.
    private func peer(behind peer: ConfiguredPeer) -> PeerID? { self.configuredDials[peer]?.peer ?? peer.id }

    /// Dials at once, unless a dial is under way, or the peer is connected or blocked.
    mutating func dialConfigured(_ peer: ConfiguredPeer) {
        guard !self.isStopping, let dial = self.configuredDials[peer], !dial.reach.isBusy else { return }
        if let record = self.peer(behind: peer).flatMap({ self.records[$0] }) {
            guard record.connection == nil, record.trust != .blocked else {
                return self.set(.redialConfigured(peer), after: EarshotLimits.configuredCheck)
            }
            // The peer is being dialled at an address where discovery has seen it.
            guard !record.reach.isBusy else { return self.set(.redialConfigured(peer), after: EarshotLimits.redialDelays[1]) }
        }
        self.deadlines.cancel(.redialConfigured(peer))
        self.configuredDials[peer]?.reach.began()
        self.emit(.dialConfigured(peer))
    }

    mutating func configuredDialReported(_ peer: ConfiguredPeer, _ event: DialEvent) {
        switch event {
        case .began(let addresses): self.configuredDials[peer]?.began(at: addresses)
        case .answered(let id): self.configuredAnswered(peer, id)
        case .nowhere: self.configuredDialEnded(peer, nil)
        case .ended(let error): self.configuredDialEnded(peer, error)
        }
    }

    private mutating func configuredDialEnded(_ peer: ConfiguredPeer, _ error: EarshotError?) {
        guard let dial = self.configuredDials[peer] else { return }
        let id = self.peer(behind: peer)
        guard let error else {
            self.configuredDials[peer]?.succeeded()
            if let id { self.beginComparison(id) }
            return self.set(.redialConfigured(peer), after: EarshotLimits.configuredCheck)
        }
        let explained = error.explained(
            name: id.flatMap { self.records[$0]?.name } ?? peer.description, ours: self.settings.encryption)
        let before = dial.reach.lastError
        self.configuredDials[peer]?.reach.dialFailed(explained)
        if let id { self.beginComparison(id) }
        // Many peers behind one address share few connection places at a host. The pause therefore differs for each machine.
        if let pause = self.configuredDials[peer]?.reach.pause(of: self.id) { self.set(.redialConfigured(peer), after: pause) }
        // The error is logged once, until it changes.
        if before?.message != explained.message {
            self.log(
                Notice(
                    explained.code == .unavailable ? .warning : .error, "cannot reach a configured peer",
                    ["peer": peer, "code": explained.code.rawValue, "error": explained]))
        }
        guard let id, let record = self.records[id], record.connection == nil else { return }
        self.records[id]?.reach.note(explained)
        if explained.isFinalForDial, record.presence.sightings.isEmpty { self.disagreed(with: id, explained) }
        self.publishPeer(id)
        if !record.presence.sightings.isEmpty { self.ensureConnection(id) }
    }

    /// Assigns the configured peers to the peer that proved its key on a connection dialled for them.
    mutating func noteConfigured(_ id: PeerID, _ facts: LinkFacts) {
        guard facts.isInitiator, let address = facts.dialledAddress else { return }
        for (peer, dial) in self.configuredDials.elements where dial.reach.isBusy && dial.addresses.contains(address) {
            self.configuredAnswered(peer, id)
        }
    }

    /// Records which peer answers at a configured address.
    private mutating func configuredAnswered(_ peer: ConfiguredPeer, _ id: PeerID) {
        guard self.configuredDials[peer] != nil else { return }
        // Another key answers there now.
        if let former = self.configuredDials[peer]?.answered(by: id) { self.forget(peer, of: former) }
        self.note(peer, of: id)
    }

    /// Schedules new dials to a peer's configured addresses after its connection was lost. The side with the lower id dials first.
    mutating func redialConfigured(_ id: PeerID, after pause: Duration) {
        for peer in self.records[id]?.reach.configured ?? [] {
            if pause > .zero { self.set(.redialConfigured(peer), after: pause) } else { self.dialConfigured(peer) }
        }
    }

    private mutating func note(_ peer: ConfiguredPeer, of id: PeerID) {
        self.makeRecord(id)
        self.records[id]?.reach.add(peer)
        self.publishPeer(id)
    }

    private mutating func forget(_ peer: ConfiguredPeer, of id: PeerID) {
        self.records[id]?.reach.remove(peer)
        if let record = self.records[id], record.reach.configured.isEmpty, record.connection == nil { self.records[id]?.reach.note(nil) }
        self.publishPeer(id)
        // A dial to this address may have delayed these two, and its result is ignored from now on.
        self.ensureConnection(id)
        self.beginComparison(id)
    }
}
