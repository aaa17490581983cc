import DequeModule

/// The limit on `register` requests to devices: of all requests of this machine, only these follow no decision, but a datagram that anyone
/// on the link can send.
struct RegisterLimit: Sendable {
    private var addresses = RateLimiter<String>(
        burst: 1, interval: EarshotLimits.deviceRegisterInterval, capacity: EarshotLimits.rememberedDeviceAddresses)
    /// The times of the last requests, the oldest first.
    private var times: Deque<MonotonicInstant> = []

    /// The devices that each address has made known.
    private var newcomers = RateLimiter<String>(
        burst: EarshotLimits.newDevicesPerAddress, interval: EarshotLimits.newDeviceInterval,
        capacity: EarshotLimits.rememberedDeviceAddresses)

    /// Whether an address may make another device known now. If so, the device is counted.
    mutating func admitNewcomer(_ address: PeerAddress, at now: MonotonicInstant) -> Bool {
        guard self.newcomers.allows(address.host, at: now) else { return false }
        self.newcomers.note(address.host, at: now)
        return true
    }

    /// Whether an address may be dialled now. If so, the request is counted.
    mutating func admit(_ address: PeerAddress, at now: MonotonicInstant) -> Bool {
        while let oldest = self.times.first, now - oldest >= EarshotLimits.deviceRegisterPeriod { self.times.removeFirst() }
        let host = address.host + (address.zone.map { "%" + $0 } ?? "")
        guard EarshotLimits.devicePorts.contains(address.port), self.times.count < EarshotLimits.deviceRegisters,
            self.addresses.allows(host, at: now)
        else { return false }
        self.addresses.note(host, at: now)
        self.times.append(now)
        return true
    }
}
