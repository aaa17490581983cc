package import EarshotWire

/// A rate limit on requests that a user here has to answer. It applies per key, and also per address, because new keys cost a stranger
/// nothing.
package struct AskingRate: Sendable {
    private var keys: RateLimiter<PeerID>
    private var addresses: RateLimiter<[UInt8]>

    /// Creates a limit that allows each key `burst` requests at once, and then one a second. The limit of an address is four times as high.
    package init(burst: Int = EarshotLimits.askingBurst) {
        let burst = min(max(1, burst), EarshotLimits.askingBurstLimit)
        self.keys = RateLimiter(burst: burst, interval: EarshotLimits.askingInterval, capacity: EarshotLimits.rememberedAskers)
        self.addresses = RateLimiter(
            burst: burst * (EarshotLimits.askingBurstPerAddress / EarshotLimits.askingBurst),
            interval: EarshotLimits.askingIntervalPerAddress,
            capacity: EarshotLimits.rememberedAskers)
    }

    /// Whether the peer may ask now. A refused request is not counted, so that one key that asks too often takes nothing from the others at
    /// its address. `origin` is the address (an IPv4 address or an IPv6 /64); `nil` if the address does not matter.
    package mutating func admit(_ peer: PeerID, from origin: [UInt8]?, at now: MonotonicInstant) -> Bool {
        guard self.keys.allows(peer, at: now), origin.map({ self.addresses.allows($0, at: now) }) ?? true else { return false }
        self.keys.note(peer, at: now)
        if let origin { self.addresses.note(origin, at: now) }
        return true
    }
}
