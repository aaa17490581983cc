import EarshotWire

/// What this machine thinks of a peer: a person's decision, else an authority's word.
struct TrustState: Sendable {
    /// What is kept of it; `nil` for a peer that was never decided about.
    private(set) var stored: StoredPeer?
    /// Until when an authority of the settings speaks for the certificate that it showed on its present or last connection.
    private(set) var vouchedUntil: WallTime?

    /// What was decided by a person, else by an authority; of a key whose digits differed no authority is believed.
    var trust: Trust {
        guard self.decided == .unknown, self.vouchedUntil != nil, self.stored?.verified != .mismatched else { return self.decided }
        return .trusted
    }

    /// What a person decided.
    var decided: Trust { self.stored?.trust ?? .unknown }

    var source: TrustSource? {
        if self.decided != .unknown { return .person }
        return self.trust == .trusted ? .authority : nil
    }

    var end: WallTime? { self.source == .authority ? self.vouchedUntil : self.stored?.trustedUntil }

    /// When the next of the two ends.
    var nextEnd: WallTime? { [self.stored?.trustedUntil, self.vouchedUntil].compactMap { $0 }.min() }

    mutating func keep(_ stored: StoredPeer) { self.stored = stored }
    mutating func forget() { self.stored = nil }
    mutating func vouch(until end: WallTime?) { self.vouchedUntil = end }

    /// Notes of a peer that is kept; `false` where that changes nothing.
    mutating func noteProven() -> Bool { self.change { $0.isProven = true } }
    mutating func noteName(_ name: String) -> Bool { self.change { $0.name = name } }
    mutating func noteTLS() -> Bool { self.change { $0.isTLSPinned = true } }
    /// Takes back that a person has decided about it, unless one has said more meanwhile.
    mutating func undecide() {
        guard self.decided == .unknown, self.stored?.verified == nil else { return }
        _ = self.change { $0.isDecided = false }
    }

    private mutating func change(_ change: (inout StoredPeer) -> Void) -> Bool {
        guard var stored = self.stored else { return false }
        change(&stored)
        guard stored != self.stored else { return false }
        self.stored = stored
        return true
    }

    /// Ends the trust that is over; whether it was a person's.
    mutating func expire(at now: WallTime) -> Bool {
        if let end = self.vouchedUntil, end <= now { self.vouchedUntil = nil }
        guard let end = self.stored?.trustedUntil, end <= now else { return false }
        self.stored?.trustedUntil = nil
        if self.stored?.trust == .trusted { self.stored?.trust = .unknown }
        return true
    }
}
