import EarshotWire
import NIOCore

/// How often each of many may do something: so many at once, then one an interval (the generic cell rate algorithm, ITU-T I.371).
///
/// Pure, with the time handed in. Of each key it keeps the time at which its allowance is whole again; a key at rest is not kept. Of more
/// keys than `capacity` those that are nearest to rest are forgotten, so that fresh keys take little from the memory of the others.
struct RateLimiter<Key: Sendable & Hashable>: Sendable {
    /// How many may come at once, at least 1.
    let burst: Int
    /// After those, the time between two.
    let interval: TimeAmount
    /// Keys remembered, at least 4.
    let capacity: Int
    private var restTimes: [Key: NIODeadline] = [:]

    init(burst: Int, interval: Duration, capacity: Int) {
        self.burst = max(1, burst)
        self.interval = TimeAmount(interval)
        self.capacity = max(4, capacity)
    }

    /// How many keys are remembered.
    var count: Int { self.restTimes.count }

    /// Whether the key may do it now; says nothing of whether it does.
    func allows(_ key: Key, at now: NIODeadline) -> Bool {
        guard let restTime = self.restTimes[key] else { return true }
        return restTime <= now + self.interval * (self.burst - 1)
    }

    /// The key does it.
    mutating func note(_ key: Key, at now: NIODeadline) {
        if self.restTimes[key] == nil, self.restTimes.count >= self.capacity { self.makeRoom(at: now) }
        self.restTimes[key] = max(self.restTimes[key] ?? now, now) + self.interval
    }

    /// Forgets those at rest; where there are none, the quarter that is nearest to it. Seldom enough to cost little for each key.
    private mutating func makeRoom(at now: NIODeadline) {
        self.restTimes = self.restTimes.filter { $0.value > now }
        guard self.restTimes.count >= self.capacity else { return }
        let latest = self.restTimes.values.sorted()[self.capacity / 4]
        self.restTimes = self.restTimes.filter { $0.value > latest }
    }
}

/// How often peers may ask the person here for something: each key, and each address, because fresh keys cost a stranger nothing.
struct AskingRate: Sendable {
    private var keys = RateLimiter<PeerID>(
        burst: EarshotLimits.askingBurst, interval: EarshotLimits.askingInterval, capacity: EarshotLimits.rememberedAskers)
    private var addresses = RateLimiter<[UInt8]>(
        burst: EarshotLimits.askingBurstPerAddress, interval: EarshotLimits.askingIntervalPerAddress,
        capacity: EarshotLimits.rememberedAskers)

    /// Whether the peer may ask now; counted only where it may, so that one key that asks too often takes nothing from the others at its
    /// address. `origin` is the address (``UnprovenConnections/origin(_:)``); `nil` where it does not matter.
    mutating func admit(_ peer: PeerID, from origin: [UInt8]?, at now: NIODeadline) -> Bool {
        guard self.keys.allows(peer, at: now), origin.map({ self.addresses.allows($0, at: now) }) ?? true else { return false }
        self.keys.note(peer, at: now)
        if let origin { self.addresses.note(origin, at: now) }
        return true
    }
}
