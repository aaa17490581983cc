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
            // An authority may still speak for it.
            let ended = self.records[id]?.trust == .trusted ? nil : record.session
            self.keepPeer(id, and: .ending(ended?.id))
            self.logger.notice("trust has ended", metadata: ["peer": "\(id)", "name": "\(record.name)"])
            if self.records[id]?.trust != .trusted {
                self.endSession(with: id, removed: ended?.id)
                self.giveUpSending(to: id)
            }
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

    /// Another peer that goes by this one's name, where somebody has dealt with one of the two: a new key under a known name may be an impostor's.
    func namesake(of record: PeerRecord) -> PeerID? {
        guard let ids = self.knownNames[record.name.lowercased()] else { return nil }
        if record.stored != nil {
            guard let other = self.impostors[record.id], let their = self.records[other], their.isNearby, their.stored == nil,
                their.name.lowercased() == record.name.lowercased()
            else { return nil }
            return other
        }
        return ids.first { id in
            guard id != record.id, let known = self.records[id], known.stored != nil else { return false }
            return known.name.lowercased() == record.name.lowercased()
        }
    }

    /// Takes a peer that was loaded into the index of names.
    func noteKnown(_ id: PeerID) {
        if let record = self.records[id] { self.noteNames(record) }
    }

    /// Keeps the index of names up, and tells of a known peer anew whose name has come back with another key.
    func noteNames(_ record: PeerRecord) {
        if record.stored != nil {
            // One that renames itself again and again leaves nothing behind.
            if let before = record.published?.name.lowercased(), before != record.name.lowercased() {
                self.knownNames[before]?.remove(record.id)
                if self.knownNames[before]?.isEmpty == true { self.knownNames[before] = nil }
            }
            self.knownNames[record.name.lowercased(), default: []].insert(record.id)
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

    // MARK: Rules

    /// What the rules go by.
    func policy(of record: PeerRecord) -> PolicyEngine {
        PolicyEngine(
            facts: PolicyEngine.Facts(
                trust: record.trust, source: record.trustSource, trustedUntil: record.stored?.trustedUntil,
                verified: record.stored?.verified,
                hasSession: record.session != nil, hasSpokenTLS: self.transport.spokenTLS.contains(record.id),
                isInviting: self.isInviting(record.id)),
            configuration: self.configuration)
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
