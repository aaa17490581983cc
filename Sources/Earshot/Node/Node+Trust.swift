import EarshotWire
import FoundationEssentials
import Logging
import NIOCore
import OrderedCollections

/// Trust that ends by itself, names that come back with another key, and what the rules say of a peer.
extension Node {
    /// The time by this machine's clock.
    var now: Date { self.configuration.now?() ?? Date() }

    // MARK: Trust that ends

    /// Has trust that was given for a time, or by an authority's certificate, end when it is over.
    func scheduleTrustExpiry(_ id: PeerID) {
        guard let record = self.records[id] else { return }
        record.trustExpiry?.cancel()
        self.records[id]?.trustExpiry = nil
        guard let end = [record.stored?.trustedUntil, record.vouchedUntil].compactMap({ $0 }).min() else { return }
        let left = Duration.milliseconds(Int64(max(0, min(end.timeIntervalSince(self.now), 86_400)) * 1000) + 1)
        // Looked at again and again: the clock may be set, and timers stand still while the machine sleeps.
        self.records[id]?.trustExpiry = self.schedule(.trustExpiry(id), after: min(left, EarshotLimits.trustCheck))
    }

    /// Ends the trust that is over, as `distrust` does, but that a peer's TLS is not forgotten: that takes a person.
    func expireTrust(_ id: PeerID) {
        guard let record = self.records[id] else { return }
        let now = self.now
        if let vouchedUntil = record.vouchedUntil, vouchedUntil <= now { self.records[id]?.vouchedUntil = nil }
        if let stored = record.stored, let until = stored.trustedUntil, until <= now {
            self.records[id]?.stored?.trustedUntil = nil
            if stored.trust == .trusted { self.records[id]?.stored?.trust = .unknown }
            self.logger.notice("trust has ended", metadata: ["peer": "\(id)", "name": "\(record.name)"])
            // An authority may still speak for it.
            if self.records[id]?.trust != .trusted {
                self.sessionEnded(id, tellPeer: true)
                self.giveUpSending(to: id)
            }
            self.keepPeer(id, andSession: true)
        }
        self.scheduleTrustExpiry(id)
        self.publishPeer(id)
    }

    /// Notes what our authorities say of the certificate on the connection that stands now.
    func noteVoucher(_ id: PeerID, _ connection: Connection) {
        self.records[id]?.vouchedUntil = connection.vouchedUntil
        self.scheduleTrustExpiry(id)
    }

    // MARK: Names

    /// Another peer that goes by this one's name, where one of the two is known: another known peer, so that the name means neither, else a
    /// new key, which may be an impostor's.
    func namesake(of record: PeerRecord) -> PeerID? {
        let name = record.name.lowercased()
        guard let ids = self.knownNames[name] else { return nil }
        let known = ids.first { id in
            guard id != record.id, let other = self.records[id], other.stored != nil, other.name.lowercased() == name else { return false }
            // A name never means a blocked peer beside one that is not.
            return record.stored == nil || (record.trust == .blocked) == (other.trust == .blocked)
        }
        guard known == nil, record.stored != nil else { return known }
        guard let other = self.impostors[record.id], let their = self.records[other], their.isNearby, their.stored == nil,
            their.name.lowercased() == name
        else { return nil }
        return other
    }

    /// Takes a peer that was loaded into the index of names.
    func noteKnown(_ id: PeerID) {
        if let record = self.records[id] { self.noteNames(record) }
    }

    /// Keeps the index of names up, and tells of a known peer anew whose name has come back with another key.
    func noteNames(_ record: PeerRecord) {
        let name = record.name.lowercased()
        // One that renames itself again and again leaves nothing behind, nor does one whose row goes.
        if let before = record.published?.name.lowercased(), before != name || record.stored == nil {
            self.forget(record.id, named: before)
        }
        if record.stored != nil {
            let isNew = self.knownNames[name, default: []].append(record.id).inserted
            if isNew, record.isAnnounced, let other = self.namesake(of: record), self.records[other]?.stored != nil {
                self.logger.warning(
                    "two peers that are known go by one name",
                    metadata: ["name": "\(record.name)", "peer": "\(record.id)", "other": "\(other)"])
            }
            return
        }
        // The first one stays the one that is spoken of: of two that take turns nobody shall hear again and again.
        guard let known = self.namesake(of: record), let theirs = self.records[known], self.namesake(of: theirs) == nil else { return }
        self.impostors[known] = record.id
        self.logger.warning(
            "a name that is known has come with another key",
            metadata: ["name": "\(record.name)", "known": "\(known)", "new": "\(record.id)"])
        self.publishPeer(known)
    }

    /// Nobody has to do with the peer any more.
    func forgetName(_ record: PeerRecord) {
        for name in [record.name, record.published?.name].compactMap({ $0 }) { self.forget(record.id, named: name) }
        self.impostors[record.id] = nil
    }

    /// Takes a peer out of the index of names.
    func forget(_ id: PeerID, named name: String) {
        self.knownNames[name.lowercased()]?.remove(id)
        if self.knownNames[name.lowercased()]?.isEmpty == true { self.knownNames[name.lowercased()] = nil }
    }

    // MARK: Rules

    /// What the rules go by.
    func policy(of record: PeerRecord) -> PolicyEngine {
        PolicyEngine(
            facts: PolicyEngine.Facts(
                trust: record.trust, source: record.trustSource, trustedUntil: record.stored?.trustedUntil.map { WallTime($0) },
                verified: record.stored?.verified,
                hasSession: record.session != nil, hasSpokenTLS: self.transport.spokenTLS.contains(record.id),
                isInviting: self.isInviting(record.id)),
            settings: self.configuration.policySettings)
    }

    /// Which rule decides what about a peer, and why; also of one that has not been seen, by its full id.
    /// - Throws: `unknown-peer`, `ambiguous-peer`.
    public func explainPolicy(_ name: String) throws(EarshotError) -> PeerPolicy {
        let id = try self.resolve(name)
        let record = self.records[id] ?? PeerRecord(id: id, now: self.now)
        return PeerPolicy(
            peerID: id, peerName: record.name, trust: record.trust, trustSource: record.trustSource,
            trustExpiresAt: record.trustExpiresAt, verified: record.stored?.verified, decisions: self.policy(of: record).explain())
    }
}
