import EarshotWire
import FoundationEssentials
import Logging
import NIOCore
import OrderedCollections

/// Configured peers: reached without discovery, beside it, for as long as the settings name them.
///
/// One that is named with its id has its row from the start; one without has none until somebody has answered there with a proven key.
/// Several that lead to one key are one row.
extension Node {
    /// Takes up a peer of the settings, and dials it.
    func addConfigured(_ peer: ConfiguredPeer) {
        guard self.configuredDials[peer] == nil, peer.id != self.id else { return }
        self.configuredDials[peer] = ConfiguredDial()
        if let id = peer.id { self.note(peer, of: id) }
        self.dialConfigured(peer)
    }

    /// Lets go of a peer that the settings do not name any more; a connection that nothing else needs goes when it is idle.
    func removeConfigured(_ peer: ConfiguredPeer) {
        guard let dial = self.configuredDials.removeValue(forKey: peer) else { return }
        dial.redial.timer?.cancel()
        if let id = dial.peer ?? peer.id { self.forget(peer, of: id) }
    }

    /// Dials at once, unless that is under way or there is nothing to be gained.
    func dialConfigured(_ peer: ConfiguredPeer) {
        guard !self.isStopping, let dial = self.configuredDials[peer], !dial.redial.isDialling else { return }
        if let record = (dial.peer ?? peer.id).flatMap({ self.records[$0] }) {
            guard record.connection == nil, record.trust != .blocked else {
                return self.scheduleConfigured(peer, after: EarshotLimits.configuredCheck)
            }
            // To where discovery has seen it.
            guard !record.redial.isDialling else { return self.scheduleConfigured(peer, after: EarshotLimits.redialDelays[1]) }
        }
        dial.redial.timer?.cancel()
        self.configuredDials[peer]?.redial.timer = nil
        self.configuredDials[peer]?.redial.isDialling = true
        let transport = self.transport
        self.spawn { [input] in
            do throws(EarshotError) {
                let addresses = try await transport.lookup.addresses(of: peer)
                // Before the connection is proven, so that it is known whose it is.
                input.yield(.resolved(peer, addresses))
                if let id = try await transport.dial(addresses, expecting: peer.id) { input.yield(.alreadyConnected(peer, id)) }
                input.yield(.dialled(.configured(peer), nil))
            } catch {
                input.yield(.dialled(.configured(peer), error))
            }
        }
    }

    private func scheduleConfigured(_ peer: ConfiguredPeer, after delay: Duration) {
        self.configuredDials[peer]?.redial.timer?.cancel()
        let timer = self.schedule(.redial(.configured(peer)), after: delay)
        self.configuredDials[peer]?.redial.timer = timer
    }

    /// Where the dial under way goes.
    func configuredResolved(_ peer: ConfiguredPeer, _ addresses: [PeerAddress]) {
        self.configuredDials[peer]?.addresses = addresses
    }

    func configuredDialFinished(_ peer: ConfiguredPeer, _ error: EarshotError?) {
        guard var dial = self.configuredDials[peer] else { return }
        let error = error.map { self.explained($0, name: (dial.peer ?? peer.id).flatMap { self.records[$0]?.name } ?? peer.description) }
        dial.redial.isDialling = false
        let before = dial.redial.lastError
        dial.redial.lastError = error
        dial.redial.attempts = error == nil ? 0 : dial.redial.attempts + 1
        self.configuredDials[peer] = dial
        if let id = dial.peer ?? peer.id { self.beginComparison(id) }
        self.scheduleConfigured(peer, after: error == nil ? EarshotLimits.configuredCheck : dial.redial.delay)
        guard let error else { return }
        // Once, until something else is the matter.
        if before?.message != error.message {
            self.logger.log(
                level: error.code == .unavailable ? .warning : .error, "cannot reach a configured peer",
                metadata: ["peer": "\(peer)", "code": "\(error.code.rawValue)", "error": "\(error)"])
        }
        guard let id = dial.peer ?? peer.id, let record = self.records[id], record.connection == nil else { return }
        self.records[id]?.redial.lastError = error
        if error.isFinalForDial, record.sightings.isEmpty {
            self.failInvitations(to: id, error)
            self.failUnsent(to: id, error)
            self.failComparison(with: id, error)
        }
        self.publishPeer(id)
        if !record.sightings.isEmpty { self.ensureConnection(id) }
    }

    /// A connection that we dialled is proven: the configured peers that it was for are this peer's.
    func noteConfigured(_ id: PeerID, _ connection: Connection) {
        guard connection.isInitiator, let address = connection.dialledAddress else { return }
        for (peer, dial) in self.configuredDials where dial.redial.isDialling && dial.addresses.contains(address) {
            self.configuredAnswered(peer, id)
        }
    }

    /// This peer answers where the settings say.
    func configuredAnswered(_ peer: ConfiguredPeer, _ id: PeerID) {
        guard let dial = self.configuredDials[peer] else { return }
        // Another key answers there now.
        if let last = dial.peer, last != id { self.forget(peer, of: last) }
        self.configuredDials[peer]?.peer = id
        self.note(peer, of: id)
    }

    /// The peer's connection is gone: its addresses in the settings are dialled anew, first by the lower id.
    func redialConfigured(_ id: PeerID, after pause: Duration) {
        for peer in self.records[id]?.configured ?? [] {
            if pause > .zero { self.scheduleConfigured(peer, after: pause) } else { self.dialConfigured(peer) }
        }
    }

    private func note(_ peer: ConfiguredPeer, of id: PeerID) {
        var record = self.records[id] ?? PeerRecord(id: id, now: self.now)
        if !record.configured.contains(peer) { record.configured.append(peer) }
        self.records[id] = record
        self.publishPeer(id)
    }

    private func forget(_ peer: ConfiguredPeer, of id: PeerID) {
        self.records[id]?.configured.removeAll { $0 == peer }
        if self.records[id]?.configured.isEmpty == true, self.records[id]?.connection == nil { self.records[id]?.redial.lastError = nil }
        self.publishPeer(id)
    }
}

extension EarshotError {
    /// Whether dialling again would end the same way.
    var isFinalForDial: Bool {
        switch self.code {
        case .identityMismatch, .encryptionMismatch, .versionUnsupported, .serviceMismatch, .downgradeDetected, .unsupported: true
        default: false
        }
    }
}
