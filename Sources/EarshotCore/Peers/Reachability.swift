import EarshotWire

/// How reaching a peer, or an address of the settings, stands.
struct Reachability: Sendable {
    private enum Dial: Sendable {
        case idle
        /// The shell has been asked to, and has not said whether there is anywhere to dial.
        case requested
        case underWay
    }

    private var dial: Dial = .idle
    /// Attempts since the last success or the last news of the peer.
    private(set) var attempts = 0
    /// How many dials were planned in all.
    private(set) var plans = 0
    /// Why the last attempt failed.
    private(set) var lastError: EarshotError?
    /// Where a dial last succeeded: tried again when discovery has gone quiet.
    private(set) var lastGoodAddress: PeerAddress?
    /// Where the settings have it.
    private(set) var configured: [ConfiguredPeer] = []

    /// Whether a connection is being made, as readers of events see it.
    var isDialling: Bool {
        switch self.dial {
        case .underWay: true
        case .idle, .requested: false
        }
    }

    /// Whether a dial is to be reported on.
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

    /// The same for the machine of that id, up to half as long: machines that lose a host in one moment dial it again in different ones.
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

    /// There is nowhere to dial: a sighting, or the peer's own dial, will bring it back.
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

/// Where a peer is to be dialled: the shell knows which networks this machine is on.
package struct DialPlan: Sendable, Hashable {
    package let seen: [SightedAddress]
    package let lastGood: PeerAddress?
    /// One that the settings name is dialled by its own schedule too, which asks for its addresses anew.
    package let needsSighting: Bool
    /// How many plans there were before.
    package let turn: Int

    package init(seen: [SightedAddress], lastGood: PeerAddress?, needsSighting: Bool, turn: Int) {
        self.seen = seen
        self.lastGood = lastGood
        self.needsSighting = needsSighting
        self.turn = turn
    }

    /// The addresses that this attempt tries, of those that are permitted: a few, the next few with each further attempt, and each time
    /// also the one where the last dial succeeded, first if it is still seen there. So a forger that advertises many addresses under the
    /// peer's id only delays reaching it. Empty where there is nowhere to dial.
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

/// How the dial of a peer of the settings stands; without an id it has no row until it has proven who it is.
struct ConfiguredDial: Sendable {
    var reach = Reachability()
    /// Which peer answered there last.
    private(set) var peer: PeerID?
    /// Where the dial under way, or the last one, went.
    private(set) var addresses: [PeerAddress] = []

    mutating func began(at addresses: [PeerAddress]) { self.addresses = addresses }

    /// This peer has answered at the address; gives the peer that did so before, where it is another one.
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
