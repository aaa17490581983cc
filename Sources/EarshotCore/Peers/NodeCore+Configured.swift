import EarshotWire
import OrderedCollections

/// Peers of the settings: reached without discovery, beside it, for as long as the settings name them.
///
/// One that is named with its id has its row from the start; one without has none until a peer has answered there with a proven key.
/// Several that lead to one key are one row.
extension NodeCore {
    /// Brings what is dialled in line with the settings.
    mutating func useConfiguredPeers(_ wanted: [ConfiguredPeer]) {
        for peer in self.configuredDials.keys where !wanted.contains(peer) { self.removeConfigured(peer) }
        for peer in wanted { self.addConfigured(peer) }
    }

    private mutating func addConfigured(_ peer: ConfiguredPeer) {
        guard self.configuredDials[peer] == nil, peer.id != self.id else { return }
        self.configuredDials[peer] = ConfiguredDial()
        if let id = peer.id { self.note(peer, of: id) }
        self.dialConfigured(peer)
    }

    /// A connection that nothing else needs goes when it is idle.
    private mutating func removeConfigured(_ peer: ConfiguredPeer) {
        guard let dial = self.configuredDials.removeValue(forKey: peer) else { return }
        self.deadlines.cancel(.redialConfigured(peer))
        if let id = dial.peer ?? peer.id { self.forget(peer, of: id) }
    }

    /// Which peer is behind an address of the settings, as far as that is known.
    private func peer(behind peer: ConfiguredPeer) -> PeerID? { self.configuredDials[peer]?.peer ?? peer.id }

    /// Dials at once, unless that is under way or there is nothing to be gained.
    mutating func dialConfigured(_ peer: ConfiguredPeer) {
        guard !self.isStopping, let dial = self.configuredDials[peer], !dial.reach.isBusy else { return }
        if let record = self.peer(behind: peer).flatMap({ self.records[$0] }) {
            guard record.connection == nil, record.trust != .blocked else {
                return self.set(.redialConfigured(peer), after: EarshotLimits.configuredCheck)
            }
            // To where discovery has seen it.
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
        // Many behind one address have few places between them at a host that all of them wait for.
        if let pause = self.configuredDials[peer]?.reach.pause(of: self.id) { self.set(.redialConfigured(peer), after: pause) }
        // Once, until something else is the matter.
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

    /// A connection that this side has dialled is proven: the configured peers that it was for are this peer's.
    mutating func noteConfigured(_ id: PeerID, _ facts: LinkFacts) {
        guard facts.isInitiator, let address = facts.dialledAddress else { return }
        for (peer, dial) in self.configuredDials where dial.reach.isBusy && dial.addresses.contains(address) {
            self.configuredAnswered(peer, id)
        }
    }

    /// This peer answers where the settings say.
    private mutating func configuredAnswered(_ peer: ConfiguredPeer, _ id: PeerID) {
        guard self.configuredDials[peer] != nil else { return }
        // Another key answers there now.
        if let former = self.configuredDials[peer]?.answered(by: id) { self.forget(peer, of: former) }
        self.note(peer, of: id)
    }

    /// The peer's connection is gone: its addresses in the settings are dialled anew, first by the lower id.
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
        // A dial there may have held these back, and what comes of it is not heard any more.
        self.ensureConnection(id)
        self.beginComparison(id)
    }
}
