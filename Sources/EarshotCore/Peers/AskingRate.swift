package import EarshotWire

/// How often peers may ask the person here for something: each key, and each address, because fresh keys cost a stranger nothing.
package struct AskingRate: Sendable {
    private var keys: RateLimiter<PeerID>
    private var addresses: RateLimiter<[UInt8]>

    /// A key may ask so often at once, and then once a second; an address four times as often.
    package init(burst: Int = EarshotLimits.askingBurst) {
        let burst = min(max(1, burst), EarshotLimits.askingBurstLimit)
        self.keys = RateLimiter(burst: burst, interval: EarshotLimits.askingInterval, capacity: EarshotLimits.rememberedAskers)
        self.addresses = RateLimiter(
            burst: burst * (EarshotLimits.askingBurstPerAddress / EarshotLimits.askingBurst),
            interval: EarshotLimits.askingIntervalPerAddress,
            capacity: EarshotLimits.rememberedAskers)
    }

    /// Whether the peer may ask now; counted only where it may, so that one key that asks too often takes nothing from the others at its
    /// address. `origin` is the address (an IPv4 address or an IPv6 /64); `nil` where it does not matter.
    package mutating func admit(_ peer: PeerID, from origin: [UInt8]?, at now: MonotonicInstant) -> Bool {
        guard self.keys.allows(peer, at: now), origin.map({ self.addresses.allows($0, at: now) }) ?? true else { return false }
        self.keys.note(peer, at: now)
        if let origin { self.addresses.note(origin, at: now) }
        return true
    }
}
