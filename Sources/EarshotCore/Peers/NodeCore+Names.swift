package import EarshotWire
import OrderedCollections

/// Names that users give for peers, and known names that appear with another key.
extension NodeCore {
    /// Returns the peer that a user means by `name`. A full id resolves even if no such peer was ever seen; for other names see
    /// ``PeerNaming``. A name of an Earshot peer never means a LocalSend device.
    ///
    /// - Throws: `invalid-parameter` if `name` is not a valid name, or is this machine itself; `unknown-peer`; `ambiguous-peer`, whose
    ///   message lists the candidates.
    package func resolve(_ name: String) throws(EarshotError) -> PeerID {
        if let id = PeerID(name) {
            guard id != self.id else { throw EarshotError(.invalidParameter, "\"\(name)\" is this machine itself") }
            guard id != .unprovenDevice else {
                throw EarshotError(.invalidParameter, "\"\(name)\" stands for any sender without a certificate, and names none")
            }
            return id
        }
        guard (1...PeerID.textLength * 8).contains(name.utf8.count) else {
            throw EarshotError(.invalidParameter, "a peer is named by its id, 8 or more characters of it, or its display name")
        }
        let entries = self.records.values.filter(\.presence.isAnnounced).map(\.namingEntry)
        let candidates = PeerNaming.candidates(for: name, among: entries)
        guard let first = candidates.first else {
            if let device = try self.resolveDevice(name) { return device }
            throw .unknown(name, onlyAdvertised: PeerNaming.onlyAdvertised(name, among: entries).map(\.id))
        }
        guard candidates.count == 1 else { throw .ambiguous(name, candidates.map { ($0.id, $0.name) }) }
        return first.id
    }

    // MARK: Aliases

    mutating func setAlias(_ alias: DisplayName?, _ name: String, _ call: CallID) {
        do throws(EarshotError) {
            let id = try self.resolve(name)
            guard alias.flatMap({ PeerID($0.description) }) == nil else {
                throw EarshotError(.invalidParameter, "an alias must not be a peer's id")
            }
            guard !self.isStopping else { throw .stopping }
            self.decide(.alias(alias, of: id, name: name, call))
        } catch {
            self.answer(call, .failure(error))
        }
    }

    /// Returns the writes of a decision about an alias.
    func operations(toCall id: PeerID, _ alias: DisplayName?, named name: String) throws(EarshotError) -> [StoreOperation] {
        let record = self.records[id] ?? PeerRecord(id: id, at: self.now.wall)
        guard let alias else { return record.standing.stored?.alias == nil ? [] : [.putPeer(self.storedPeer(record, called: nil))] }
        try self.checkKey(of: record, named: name)
        let lowercased = alias.description.lowercased()
        if self.devices.all.contains(where: { $0.isStored && $0.name.lowercased() == lowercased }) {
            throw EarshotError(.conflict, "a device is already called \"\(alias)\"")
        }
        let other = self.names.bearers(of: lowercased).first { self.isStored($0, named: lowercased, besides: id) }
        if let other, let name = self.records[other]?.name { throw EarshotError(.conflict, "\(other) is already called \"\(name)\"") }
        return [.putPeer(self.storedPeer(record, called: alias))]
    }

    /// Applies a decision about an alias after it was written.
    mutating func adopt(_ alias: DisplayName?, of id: PeerID) {
        guard alias != nil || self.records[id]?.standing.stored?.alias != nil else { return }
        self.makeRecord(id)
        guard let record = self.records[id] else { return }
        let stored = self.storedPeer(record, called: alias)
        self.records[id]?.standing.keep(stored)
        if stored.isTLSPinned { self.pin(id, .keep) }
        self.log(Notice(.info, "a user has named a peer", ["peer": id, "name": record.ownName, "alias": alias?.description ?? "none"]))
        self.publishPeer(id)
    }

    /// Returns the row of a peer with this alias. A name that a user gives is a decision about the peer.
    private func storedPeer(_ record: PeerRecord, called alias: DisplayName?) -> StoredPeer {
        var stored = self.storedPeer(record)
        stored.alias = alias
        if alias != nil { stored.isDecided = true }
        return stored
    }

    // MARK: Conflicts

    /// Returns another peer with this peer's name, if one of the two is stored (a name conflict). Another stored peer is preferred: then
    /// the name means neither of the two. Otherwise the result is a stranger with another key.
    func namesake(of record: PeerRecord) -> PeerID? {
        let name = record.name.lowercased()
        let namesakes = self.names.bearers(of: name)
        guard !namesakes.isEmpty else { return nil }
        let known = namesakes.first { id in
            guard self.isStored(id, named: name, besides: record.id) else { return false }
            // If one of two peers is blocked, the name means the other one.
            return record.standing.stored == nil || (record.trust == .blocked) == (self.records[id]?.trust == .blocked)
        }
        guard known == nil, record.standing.stored != nil else { return known }
        guard let other = self.names.stranger(besides: record.id), let their = self.records[other], their.isNearby,
            their.standing.stored == nil, their.name.lowercased() == name
        else { return nil }
        return other
    }

    /// Whether a peer is stored, is another one, and has this name in lower case.
    private func isStored(_ id: PeerID, named name: String, besides other: PeerID) -> Bool {
        guard id != other, let record = self.records[id] else { return false }
        return record.standing.stored != nil && record.name.lowercased() == name
    }

    /// Updates the index of names, and republishes a stored peer whose name has appeared with another key.
    mutating func noteNames(_ record: PeerRecord) {
        // The former name is removed when a peer renames itself or its row is dropped, so that the index does not grow.
        if let before = record.presence.published?.name.lowercased(),
            before != record.name.lowercased() || record.standing.stored == nil
        {
            self.names.remove(record.id, named: before)
        }
        if record.standing.stored != nil {
            let isNew = self.names.add(record.id, named: record.name)
            if isNew, record.presence.isAnnounced, let other = self.namesake(of: record), self.records[other]?.standing.stored != nil {
                self.log(
                    Notice(
                        .warning, "two peers that are known go by one name", ["name": record.name, "peer": record.id, "other": other]))
            }
            return
        }
        // Only the first stranger under a known name is published: two strangers that alternate would cause endless events.
        guard let known = self.namesake(of: record), let theirs = self.records[known], self.namesake(of: theirs) == nil else { return }
        self.names.note(stranger: record.id, besides: known)
        self.log(
            Notice(
                .warning, "a name that is known has come with another key", ["name": record.name, "known": known, "new": record.id]))
        self.publishPeer(known)
    }

    /// Removes the names of a peer that is no longer stored.
    mutating func forgetName(of record: PeerRecord) {
        for name in [record.name, record.presence.published?.name].compactMap({ $0 }) { self.names.remove(record.id, named: name) }
        self.names.forgetStranger(besides: record.id)
    }
}

extension EarshotError {
    /// Returns the error for a name without a peer. It lists a few ids that begin with the name and are only advertised.
    package static func unknown(_ name: String, onlyAdvertised advertised: [PeerID] = []) -> Self {
        let words = "no peer is called \"\(name)\""
        guard !advertised.isEmpty else { return Self(.unknownPeer, words) }
        let list = advertised.prefix(EarshotLimits.advertisedIDsNamed).map(\.description).joined(separator: ", ")
        return Self(
            .unknownPeer, "\(words); an id that begins so is advertised, but not proven: to mean that peer, give the whole of it, \(list)")
    }

    /// Returns the error for a name of several peers. The candidates are listed in ``candidates`` and in the message.
    package static func ambiguous(_ name: String, _ candidates: [(id: PeerID, name: String)]) -> Self {
        Self(
            .ambiguousPeer,
            "\"\(name)\" could be any of \(candidates.count) peers: "
                + candidates.map { "\($0.name) (\($0.id))" }.joined(separator: ", "),
            candidates: candidates.map { Candidate(id: $0.id, name: $0.name) })
    }

    /// Returns the error for a full id of a peer that was never seen.
    static func unseen(_ id: PeerID) -> Self { Self(.unknownPeer, "no peer with the id \(id) has been seen") }

    static func blocked(_ name: String) -> Self { Self(.forbidden, "\(name) is blocked", remedy: .unblock) }

    /// The error for calls that arrive after the shutdown has begun.
    package static var stopping: Self { Self(.unavailable, "this side is shutting down") }
}
