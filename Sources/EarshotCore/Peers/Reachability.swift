import EarshotWire

/// The state of dialling a peer, or an address of the settings.
struct Reachability: Sendable {
    private enum Dial: Sendable {
        case idle
        /// The shell was asked to dial, and has not reported yet whether there is an address to dial.
        case requested
        case underWay
    }

    private var dial: Dial = .idle
    /// The number of attempts since the last success or the last news of the peer.
    private(set) var attempts = 0
    /// The number of dials planned in all.
    private(set) var plans = 0
    /// The reason why the last attempt failed.
    private(set) var lastError: EarshotError?
    /// The address at which a dial last succeeded. It is tried again when discovery no longer reports the peer.
    private(set) var lastGoodAddress: PeerAddress?
    /// The peer's addresses in the settings.
    private(set) var configured: [ConfiguredPeer] = []

    /// Whether a connection is being made, as published in events.
    var isDialling: Bool {
        switch self.dial {
        case .underWay: true
        case .idle, .requested: false
        }
    }

    /// Whether the shell still has to report on a dial.
    var isBusy: Bool {
        switch self.dial {
        case .underWay, .requested: true
        case .idle: false
        }
    }

    /// The pause before the next attempt.
    var pause: Duration {
        let delays = EarshotLimits.redialDelays
        return delays[min(self.attempts, delays.count - 1)]
    }

    /// Returns the pause for the machine with that id, shorter by up to half. Machines that lose a host at the same time therefore dial it
    /// again at different times.
    func pause(of id: PeerID) -> Duration {
        let bytes = id.bytes
        return self.pause - self.pause * Int(bytes[self.attempts % bytes.count]) / 512
    }

    mutating func plan(_ seen: [SightedAddress]) -> DialPlan {
        self.plans &+= 1
        return DialPlan(seen: seen, lastGood: self.lastGoodAddress, needsSighting: !self.configured.isEmpty, turn: self.plans &- 1)
    }

    mutating func asked() { self.dial = .requested }
    mutating func began() { self.dial = .underWay }

    /// Ends a dial without an address. A sighting, or the peer's own dial, will start the next one.
    mutating func foundNowhere() {
        self.dial = .idle
        guard self.configured.isEmpty else { return }
        self.lastError = EarshotError(.unavailable, "it is not seen on the network")
    }

    mutating func dialSucceeded() { self.dial = .idle }

    mutating func dialFailed(_ error: EarshotError) {
        self.dial = .idle
        self.attempts += 1
        self.lastError = error
    }

    mutating func connected(at address: PeerAddress?) {
        self.attempts = 0
        self.lastError = nil
        if let address { self.lastGoodAddress = address }
    }

    mutating func forgetFailures() { self.attempts = 0 }
    mutating func note(_ error: EarshotError?) { self.lastError = error }

    mutating func add(_ peer: ConfiguredPeer) {
        if !self.configured.contains(peer) { self.configured.append(peer) }
    }

    mutating func remove(_ peer: ConfiguredPeer) { self.configured.removeAll { $0 == peer } }
}

/// The addresses at which a peer may be dialled. The shell selects among them, because it knows this machine's networks.
package struct DialPlan: Sendable, Hashable {
    package let seen: [SightedAddress]
    package let lastGood: PeerAddress?
    /// Whether only seen addresses are dialled. A peer that the settings name is also dialled by the configured schedule, which resolves
    /// its addresses again.
    package let needsSighting: Bool
    /// The number of earlier plans.
    package let turn: Int

    package init(seen: [SightedAddress], lastGood: PeerAddress?, needsSighting: Bool, turn: Int) {
        self.seen = seen
        self.lastGood = lastGood
        self.needsSighting = needsSighting
        self.turn = turn
    }

    /// Returns the addresses that this attempt tries, among the permitted ones: a few, and the next few at each further attempt. The
    /// address of the last success is always included, and comes first if it is still seen. An attacker that advertises many addresses
    /// under the peer's id therefore only delays the connection. The result is empty if there is nowhere to dial.
    package func addresses(where isPermitted: (SightedAddress) -> Bool) -> [PeerAddress] {
        let seen = self.seen.filter(isPermitted).map(\.address)
        guard !seen.isEmpty || !self.needsSighting else { return [] }
        let others = seen.filter { $0 != self.lastGood }
        let room = EarshotLimits.addressesPerDial - (self.lastGood == nil ? 0 : 1)
        var next = others
        if others.count > room, room > 0 {
            let start = self.turn.multipliedReportingOverflow(by: room).partialValue.magnitude % UInt(others.count)
            next = Array((others[Int(start)...] + others[..<Int(start)]).prefix(room))
        }
        guard let last = self.lastGood else { return next }
        return others.count < seen.count ? [last] + next : next + [last]
    }
}

/// The state of dialling a configured peer. Without an id, the peer has no row until it has proven its key.
struct ConfiguredDial: Sendable {
    var reach = Reachability()
    /// The peer that last answered at the address.
    private(set) var peer: PeerID?
    /// The addresses of the present or last dial.
    private(set) var addresses: [PeerAddress] = []

    mutating func began(at addresses: [PeerAddress]) { self.addresses = addresses }

    /// Notes the peer that answered at the address. Returns the peer that answered there before, if it was another one.
    mutating func answered(by peer: PeerID) -> PeerID? {
        defer { self.peer = peer }
        return self.peer == peer ? nil : self.peer
    }

    mutating func succeeded() {
        self.reach.dialSucceeded()
        self.reach.forgetFailures()
        self.reach.note(nil)
    }
}
