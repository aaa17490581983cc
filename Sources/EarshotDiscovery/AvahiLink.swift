import CAvahi
import Earshot

/// What Avahi said, copied out of its callback: callbacks only append these, and the engine acts on them once Avahi has returned.
/// So nothing of Avahi's is ever called or freed from inside one of its callbacks, not even when those fire inside a constructor.
enum AvahiSignal: Equatable {
    /// The bus is there, the daemon is not yet; it will be noticed.
    case connecting
    case up
    /// The host name is being settled: publications wait for the next `up`.
    case paused
    /// Everything is lost; only a new connection helps.
    case down(AvahiFailure)
    case published
    case publicationCollided
    case publicationFailed(AvahiFailure)
    case appeared(Sighting.Key, isOwn: Bool)
    case disappeared(Sighting.Key)
    case browsingFailed(AvahiFailure)
    case resolved(Sighting.Key, ResolvedInstance)
    case resolvingFailed(Sighting.Key)
    /// The instance's host has this address on its interface and protocol, or has it no more.
    case address(Sighting.Key, String, isPresent: Bool)
}

/// What a resolver found.
struct ResolvedInstance: Equatable {
    let host: String
    /// One of the host's addresses: a resolver tells no others.
    let address: String
    let port: UInt16
    let txt: [TXTPair]
}

/// A call of Avahi's that failed.
struct AvahiFailure: Error, Equatable {
    /// One of `AVAHI_ERR_...`.
    let code: Int32
    /// What was tried, such as `advertise on the network`.
    let attempt: String

    var isCollision: Bool { self.code == Int32(AVAHI_ERR_COLLISION) }

    /// Whether avahi-daemon, or the system bus for it, has said no: asking again soon ends the same way, and a new connection changes nothing.
    var isRefusal: Bool { [Int32(AVAHI_ERR_NOT_PERMITTED), Int32(AVAHI_ERR_ACCESS_DENIED)].contains(self.code) }

    /// The time before the same is tried again on the same connection.
    var pause: Duration { self.isRefusal ? DiscoveryLimits.refusedRetry : DiscoveryLimits.retry }

    /// The same failure, told apart by how long the call took. libavahi-client has one code for a bus that does not answer and for one whose
    /// policy refuses the call, but a refusal comes at once.
    func after(_ time: Duration) -> AvahiFailure {
        guard self.code == Int32(AVAHI_ERR_DBUS_ERROR), time < DiscoveryLimits.callPatience else { return self }
        return AvahiFailure(code: Int32(AVAHI_ERR_ACCESS_DENIED), attempt: self.attempt)
    }

    /// One sentence: what failed, why, and what to do.
    var message: String {
        switch self.code {
        case Int32(AVAHI_ERR_DBUS_ERROR):
            "cannot \(self.attempt): the system bus does not answer; start dbus and avahi-daemon, or set the discovery backend to embedded"
        case Int32(AVAHI_ERR_TIMEOUT):
            "cannot \(self.attempt): avahi-daemon does not answer; restart it, or set the discovery backend to embedded"
        case Int32(AVAHI_ERR_DISCONNECTED), Int32(AVAHI_ERR_NO_DAEMON):
            "cannot \(self.attempt): avahi-daemon is not running; start it, or set the discovery backend to embedded"
        case Int32(AVAHI_ERR_NOT_PERMITTED):
            "cannot \(self.attempt): avahi-daemon does not permit it; look for disable-publishing and "
                + "disable-user-service-publishing in avahi-daemon.conf"
        case Int32(AVAHI_ERR_ACCESS_DENIED):
            "cannot \(self.attempt): the system bus denies access to avahi-daemon; look at its D-Bus policy"
        case Int32(AVAHI_ERR_NO_NETWORK):
            "cannot \(self.attempt): no network interface is up that can multicast; bring one up"
        default:
            "cannot \(self.attempt): \(String(cString: avahi_strerror(self.code)))"
        }
    }
}

/// One connection to an Avahi, the system's or our own; lives on one Avahi thread.
protocol AvahiLink: AnyObject {
    /// What happened since the last look, in order; the engine takes them out.
    var signals: [AvahiSignal] { get set }
    /// Makes the client or server; its state follows as signals.
    func connect() throws(AvahiFailure)
    /// Frees everything; no signal of before is valid any more.
    func disconnect()
    /// Replaces what is published; `published`, or why not, follows.
    func publish(name: String, type: String, port: UInt16, txt: [[UInt8]]) throws(AvahiFailure)
    func unpublish()
    func browse(type: String) throws(AvahiFailure)
    func openResolver(_ key: Sighting.Key, type: String) throws(AvahiFailure)
    func closeResolver(_ key: Sighting.Key)
    /// Follows the addresses of an instance's host, on the instance's interface and protocol.
    func openAddresses(_ key: Sighting.Key, host: String) throws(AvahiFailure)
    func closeAddresses(_ key: Sighting.Key)
    /// Asks for a sign of life, and blocks for it.
    func ping() throws(AvahiFailure)
    /// Whether it follows this machine's addresses itself: `refresh` is called every `DiscoveryLimits.addressPoll` while up.
    var followsAddresses: Bool { get }
    func refresh()
}

extension AvahiLink {
    /// The address protocol of a sighting, which is also that of the address asked for.
    func proto(of key: Sighting.Key) -> AvahiProtocol {
        AvahiProtocol(key.overIPv6 ? AVAHI_PROTO_INET6 : AVAHI_PROTO_INET)
    }

    /// The signal for a service browser's event; `nil` for those that mean nothing to us.
    func signal(
        for event: AvahiBrowserEvent, interface: AvahiIfIndex, proto: AvahiProtocol, name: UnsafePointer<CChar>?, isOwn: Bool, error: Int32
    ) -> AvahiSignal? {
        if event == AVAHI_BROWSER_FAILURE { return .browsingFailed(AvahiFailure(code: error, attempt: "browse the network")) }
        guard event == AVAHI_BROWSER_NEW || event == AVAHI_BROWSER_REMOVE, let name else { return nil }
        let key = Sighting.Key(
            instanceName: String(cString: name), interfaceIndex: interface, overIPv6: proto == AvahiProtocol(AVAHI_PROTO_INET6))
        return event == AVAHI_BROWSER_NEW ? .appeared(key, isOwn: isOwn) : .disappeared(key)
    }

    /// The signal for a resolver's event.
    func signal(
        for event: AvahiResolverEvent, key: Sighting.Key, host: UnsafePointer<CChar>?, address: UnsafePointer<AvahiAddress>?, port: UInt16,
        txt: [[UInt8]]
    ) -> AvahiSignal {
        guard event == AVAHI_RESOLVER_FOUND, let host, let address, let text = self.text(of: address) else { return .resolvingFailed(key) }
        return .resolved(key, ResolvedInstance(host: String(cString: host), address: text, port: port, txt: TXTRecord.pairs(of: txt)))
    }

    /// The signal for an event of a browser of address records; `nil` for those that mean nothing to us.
    func signal(for event: AvahiBrowserEvent, key: Sighting.Key, bytes: UnsafeRawBufferPointer) -> AvahiSignal? {
        guard event == AVAHI_BROWSER_NEW || event == AVAHI_BROWSER_REMOVE, bytes.count == (key.overIPv6 ? 16 : 4) else { return nil }
        var address = AvahiAddress()
        address.proto = self.proto(of: key)
        withUnsafeMutableBytes(of: &address.data) { $0.copyMemory(from: bytes) }
        return self.text(of: &address).map { .address(key, $0, isPresent: event == AVAHI_BROWSER_NEW) }
    }

    /// The type of the record that holds an address of the sighting's protocol (RFC 1035, RFC 3596).
    func addressType(of key: Sighting.Key) -> UInt16 {
        UInt16(key.overIPv6 ? AVAHI_DNS_TYPE_AAAA : AVAHI_DNS_TYPE_A)
    }

    private func text(of address: UnsafePointer<AvahiAddress>) -> String? {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(AVAHI_ADDRESS_STR_MAX)) { buffer in
            guard let start = buffer.baseAddress, avahi_address_snprint(start, buffer.count, address) != nil else { return nil }
            return String(cString: start)
        }
    }
}

extension [AvahiSignal] {
    /// Takes out what an entry group said that is no more.
    mutating func dropPublication() {
        self.removeAll { signal in
            switch signal {
            case .published, .publicationCollided, .publicationFailed: true
            case .connecting, .up, .paused, .down, .appeared, .disappeared, .browsingFailed, .resolved, .resolvingFailed, .address: false
            }
        }
    }
}
