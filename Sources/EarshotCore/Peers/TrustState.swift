import EarshotWire

/// The trust of this machine in a peer, decided by a user, else by a configured authority.
struct TrustState: Sendable {
    /// The stored row; `nil` for a peer without a decision.
    private(set) var stored: StoredPeer?
    /// The time until which a configured authority vouches for the certificate that the peer showed on its present or last connection.
    private(set) var vouchedUntil: WallTime?

    /// The effective trust: a user's decision, else an authority's. If the digits of a key differed, no authority is believed.
    var trust: Trust {
        guard self.decided == .unknown, self.vouchedUntil != nil, self.stored?.verified != .mismatched else { return self.decided }
        return .trusted
    }

    /// The user's decision.
    var decided: Trust { self.stored?.trust ?? .unknown }

    var source: TrustSource? {
        if self.decided != .unknown { return .person }
        return self.trust == .trusted ? .authority : nil
    }

    var end: WallTime? { self.source == .authority ? self.vouchedUntil : self.stored?.trustedUntil }

    /// The time at which the next of the two expires.
    var nextEnd: WallTime? { [self.stored?.trustedUntil, self.vouchedUntil].compactMap { $0 }.min() }

    mutating func keep(_ stored: StoredPeer) { self.stored = stored }
    mutating func forget() { self.stored = nil }
    mutating func vouch(until end: WallTime?) { self.vouchedUntil = end }

    /// Updates a stored peer. Returns `false` if nothing changes.
    mutating func noteProven() -> Bool { self.change { $0.isProven = true } }
    mutating func noteName(_ name: String) -> Bool { self.change { $0.name = name } }
    mutating func noteTLS() -> Bool { self.change { $0.isTLSPinned = true } }
    /// Withdraws the mark that a user has decided about the peer, unless another decision has been made meanwhile.
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

    /// Ends expired trust. Returns whether a user had given it.
    mutating func expire(at now: WallTime) -> Bool {
        if let end = self.vouchedUntil, end <= now { self.vouchedUntil = nil }
        guard let end = self.stored?.trustedUntil, end <= now else { return false }
        self.stored?.trustedUntil = nil
        if self.stored?.trust == .trusted { self.stored?.trust = .unknown }
        return true
    }
}
