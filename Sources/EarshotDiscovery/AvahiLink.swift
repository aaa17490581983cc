import CAvahi
import Earshot

/// An event of Avahi, copied out of its callback. Callbacks only append signals, and the engine acts on them once Avahi has returned. So no
/// Avahi function is called, and no object freed, inside one of its callbacks, even if those run inside a constructor.
enum AvahiSignal: Equatable {
    /// The bus is available, and the daemon is not there yet. Its arrival will be signalled.
    case connecting
    case up
    /// The host name is being settled: publications wait for the next `up`.
    case paused
    /// The connection is lost, and only a new one helps.
    case down(AvahiFailure)
    case published
    case publicationCollided
    case publicationFailed(AvahiFailure)
    case appeared(Sighting.Key, isOwn: Bool)
    case disappeared(Sighting.Key)
    case browsingFailed(AvahiFailure)
    case resolved(Sighting.Key, ResolvedInstance)
    case resolvingFailed(Sighting.Key)
    /// The instance's host has gained or lost this address on its interface and protocol.
    case address(Sighting.Key, String, isPresent: Bool)
}

/// The result of a resolver.
struct ResolvedInstance: Equatable {
    let host: String
    /// One of the host's addresses: a resolver reports only one.
    let address: String
    let port: UInt16
    let txt: [TXTPair]
}

/// A failed call to Avahi.
struct AvahiFailure: Error, Equatable {
    /// An `AVAHI_ERR_...` code.
    let code: Int32
    /// The attempted action, such as `advertise on the network`.
    let attempt: String

    var isCollision: Bool { self.code == Int32(AVAHI_ERR_COLLISION) }

    /// Whether avahi-daemon, or the system bus on its behalf, has refused the call. A quick retry fails in the same way, and a new
    /// connection changes nothing.
    var isRefusal: Bool { [Int32(AVAHI_ERR_NOT_PERMITTED), Int32(AVAHI_ERR_ACCESS_DENIED)].contains(self.code) }

    /// The pause before a retry on the same connection.
    var pause: Duration { self.isRefusal ? DiscoveryLimits.refusedRetry : DiscoveryLimits.retry }

    /// Returns the failure, classified by the duration of the call. libavahi-client has one code for a bus that does not answer and for a
    /// bus whose policy refuses the call, but a refusal is immediate.
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

/// A connection to an Avahi, the system's or our own. It lives on one Avahi thread.
protocol AvahiLink: AnyObject {
    /// The events since the last look, in order. The engine removes them.
    var signals: [AvahiSignal] { get set }
    /// Creates the client or server. Its state follows as signals.
    func connect() throws(AvahiFailure)
    /// Frees everything. Earlier signals are no longer valid.
    func disconnect()
    /// Replaces the published service. The signal `published`, or the failure, follows.
    func publish(name: String, type: String, port: UInt16, txt: [[UInt8]]) throws(AvahiFailure)
    func unpublish()
    func browse(type: String) throws(AvahiFailure)
    func openResolver(_ key: Sighting.Key, type: String) throws(AvahiFailure)
    func closeResolver(_ key: Sighting.Key)
    /// Starts following the addresses of an instance's host, on the instance's interface and protocol.
    func openAddresses(_ key: Sighting.Key, host: String) throws(AvahiFailure)
    func closeAddresses(_ key: Sighting.Key)
    /// Checks that Avahi answers; blocks until it does.
    func ping() throws(AvahiFailure)
    /// Whether the link follows this machine's addresses itself: `refresh` is called every `DiscoveryLimits.addressPoll` while up.
    var followsAddresses: Bool { get }
    func refresh()
}

extension AvahiLink {
    /// The address protocol of a sighting, which is also that of the requested address.
    func proto(of key: Sighting.Key) -> AvahiProtocol {
        AvahiProtocol(key.overIPv6 ? AVAHI_PROTO_INET6 : AVAHI_PROTO_INET)
    }

    /// Returns the signal for a service browser's event; `nil` if the event is irrelevant.
    func signal(
        for event: AvahiBrowserEvent, interface: AvahiIfIndex, proto: AvahiProtocol, name: UnsafePointer<CChar>?, isOwn: Bool, error: Int32
    ) -> AvahiSignal? {
        if event == AVAHI_BROWSER_FAILURE { return .browsingFailed(AvahiFailure(code: error, attempt: "browse the network")) }
        guard event == AVAHI_BROWSER_NEW || event == AVAHI_BROWSER_REMOVE, let name else { return nil }
        let key = Sighting.Key(
            instanceName: String(cString: name), interfaceIndex: interface, overIPv6: proto == AvahiProtocol(AVAHI_PROTO_INET6))
        return event == AVAHI_BROWSER_NEW ? .appeared(key, isOwn: isOwn) : .disappeared(key)
    }

    /// Returns the signal for a resolver's event.
    func signal(
        for event: AvahiResolverEvent, key: Sighting.Key, host: UnsafePointer<CChar>?, address: UnsafePointer<AvahiAddress>?, port: UInt16,
        txt: [[UInt8]]
    ) -> AvahiSignal {
        guard event == AVAHI_RESOLVER_FOUND, let host, let address, let text = self.text(of: address) else { return .resolvingFailed(key) }
        return .resolved(key, ResolvedInstance(host: String(cString: host), address: text, port: port, txt: TXTRecord.pairs(of: txt)))
    }

    /// Returns the signal for an event of a browser of address records; `nil` if the event is irrelevant.
    func signal(for event: AvahiBrowserEvent, key: Sighting.Key, bytes: UnsafeRawBufferPointer) -> AvahiSignal? {
        guard event == AVAHI_BROWSER_NEW || event == AVAHI_BROWSER_REMOVE, bytes.count == (key.overIPv6 ? 16 : 4) else { return nil }
        var address = AvahiAddress()
        address.proto = self.proto(of: key)
        withUnsafeMutableBytes(of: &address.data) { $0.copyMemory(from: bytes) }
        return self.text(of: &address).map { .address(key, $0, isPresent: event == AVAHI_BROWSER_NEW) }
    }

    /// Returns the type of the record that holds an address of the sighting's protocol (RFC 1035, RFC 3596).
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
    /// Removes the signals of an entry group that has been freed.
    mutating func dropPublication() {
        self.removeAll { signal in
            switch signal {
            case .published, .publicationCollided, .publicationFailed: true
            case .connecting, .up, .paused, .down, .appeared, .disappeared, .browsingFailed, .resolved, .resolvingFailed, .address: false
            }
        }
    }
}
