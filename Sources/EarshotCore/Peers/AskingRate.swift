package import EarshotWire

/// How often peers may ask the person here for something: each key, and each address, because fresh keys cost a stranger nothing.
package struct AskingRate: Sendable {
    private var keys = RateLimiter<PeerID>(
        burst: EarshotLimits.askingBurst, interval: EarshotLimits.askingInterval, capacity: EarshotLimits.rememberedAskers)
    private var addresses = RateLimiter<[UInt8]>(
        burst: EarshotLimits.askingBurstPerAddress, interval: EarshotLimits.askingIntervalPerAddress,
        capacity: EarshotLimits.rememberedAskers)

    package init() {}

    /// Whether the peer may ask now; counted only where it may, so that one key that asks too often takes nothing from the others at its
    /// address. `origin` is the address (an IPv4 address or an IPv6 /64); `nil` where it does not matter.
    package mutating func admit(_ peer: PeerID, from origin: [UInt8]?, at now: MonotonicInstant) -> Bool {
        guard self.keys.allows(peer, at: now), origin.map({ self.addresses.allows($0, at: now) }) ?? true else { return false }
        self.keys.note(peer, at: now)
        if let origin { self.addresses.note(origin, at: now) }
        return true
    }
}
