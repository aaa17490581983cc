import CAvahi
import Earshot

/// A link to the system's avahi-daemon through libavahi-client.
final class AvahiClientLink: AvahiLink {
    var signals: [AvahiSignal] = []
    private let loop: AvahiLoop
    private let avahi: earshot_avahi_client
    private var client: OpaquePointer?
    private var group: OpaquePointer?
    private var browser: OpaquePointer?
    private var resolvers: [Sighting.Key: OpaquePointer] = [:]
    private var addressBrowsers: [Sighting.Key: OpaquePointer] = [:]
    /// The instance of each address browser, whose callback names only the host.
    private var addressKeys: [OpaquePointer: Sighting.Key] = [:]
    /// An empty entry group, which `ping` asks about.
    private var pulse: OpaquePointer?

    /// Creates a link; `nil` if libavahi-client cannot be loaded.
    init?(loop: AvahiLoop) {
        var avahi = earshot_avahi_client()
        guard earshot_avahi_client_load(&avahi) != 0 else { return nil }
        self.avahi = avahi
        self.loop = loop
    }

    /// The context of the callbacks. Not retained: `disconnect` frees every Avahi object that holds it, and the engine calls that before it
    /// releases the link.
    private var context: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

    private static func link(_ context: UnsafeMutableRawPointer?) -> AvahiClientLink? {
        context.map { Unmanaged<AvahiClientLink>.fromOpaque($0).takeUnretainedValue() }
    }

    func connect() throws(AvahiFailure) {
        self.disconnect()
        var error: CInt = 0
        // NO_FAIL: the client waits on the bus for a daemon that has not started yet.
        let flags = AvahiClientFlags(rawValue: AVAHI_CLIENT_NO_FAIL.rawValue | AVAHI_CLIENT_IGNORE_USER_CONFIG.rawValue)
        self.client = self.avahi.client_new(
            self.loop.poll, flags,
            { client, state, context in AvahiClientLink.link(context)?.clientChanged(client, state) }, self.context, &error)
        guard self.client != nil else {
            self.signals.removeAll()
            // With NO_FAIL a missing daemon is no error, so the bus is missing.
            let isAboutBus = [AVAHI_ERR_NO_DAEMON, AVAHI_ERR_DISCONNECTED].contains(Int(error))
            throw AvahiFailure(code: isAboutBus ? Int32(AVAHI_ERR_DBUS_ERROR) : error, attempt: "reach avahi-daemon")
        }
    }

    private func clientChanged(_ client: OpaquePointer?, _ state: AvahiClientState) {
        switch state {
        case AVAHI_CLIENT_S_RUNNING: self.signals.append(.up)
        case AVAHI_CLIENT_S_REGISTERING, AVAHI_CLIENT_S_COLLISION: self.signals.append(.paused)
        case AVAHI_CLIENT_CONNECTING: self.signals.append(.connecting)
        default: self.signals.append(.down(AvahiFailure(code: self.avahi.client_errno(client), attempt: "reach avahi-daemon")))
        }
    }

    func disconnect() {
        // This frees the group, the browser and the resolvers too.
        if let client = self.client { self.avahi.client_free(client) }
        self.client = nil
        self.group = nil
        self.browser = nil
        self.resolvers.removeAll()
        self.addressBrowsers.removeAll()
        self.addressKeys.removeAll()
        self.pulse = nil
        self.signals.removeAll()
    }

    private func failure(_ attempt: String) -> AvahiFailure {
        AvahiFailure(code: self.client.map { self.avahi.client_errno($0) } ?? Int32(AVAHI_ERR_DISCONNECTED), attempt: attempt)
    }

    /// Performs `work`, and classifies its failure by its duration.
    private func timed<Result>(_ work: () throws(AvahiFailure) -> Result) throws(AvahiFailure) -> Result {
        let start = ContinuousClock.now
        do {
            return try work()
        } catch {
            throw error.after(ContinuousClock.now - start)
        }
    }

    func publish(name: String, type: String, port: UInt16, txt: [[UInt8]]) throws(AvahiFailure) {
        try self.timed { () throws(AvahiFailure) in try self.add(name: name, type: type, port: port, txt: txt) }
    }

    private func add(name: String, type: String, port: UInt16, txt: [[UInt8]]) throws(AvahiFailure) {
        self.unpublish()
        let attempt = "advertise on the network"
        guard let client = self.client else { throw self.failure(attempt) }
        guard
            let group = self.avahi.entry_group_new(
                client,
                { group, state, context in AvahiClientLink.link(context)?.groupChanged(group, state) }, self.context)
        else { throw self.failure(attempt) }
        self.group = group
        let code = TXTRecord.withList(txt) { list in
            self.avahi.entry_group_add_service_strlst(
                group, AvahiIfIndex(AVAHI_IF_UNSPEC), AvahiProtocol(AVAHI_PROTO_UNSPEC), AvahiPublishFlags(rawValue: 0), name, type, nil,
                nil, port, list)
        }
        guard code >= 0 else { throw AvahiFailure(code: code, attempt: attempt) }
        let committed = self.avahi.entry_group_commit(group)
        guard committed >= 0 else { throw AvahiFailure(code: committed, attempt: attempt) }
    }

    private func groupChanged(_ group: OpaquePointer?, _ state: AvahiEntryGroupState) {
        switch state {
        case AVAHI_ENTRY_GROUP_ESTABLISHED: self.signals.append(.published)
        case AVAHI_ENTRY_GROUP_COLLISION: self.signals.append(.publicationCollided)
        case AVAHI_ENTRY_GROUP_FAILURE:
            let code = self.avahi.client_errno(self.avahi.entry_group_get_client(group))
            self.signals.append(.publicationFailed(AvahiFailure(code: code, attempt: "advertise on the network")))
        default: break
        }
    }

    func unpublish() {
        if let group = self.group { _ = self.avahi.entry_group_free(group) }
        self.group = nil
        self.signals.dropPublication()
    }

    func browse(type: String) throws(AvahiFailure) {
        try self.timed { () throws(AvahiFailure) in try self.openBrowser(type: type) }
    }

    private func openBrowser(type: String) throws(AvahiFailure) {
        if let browser = self.browser { _ = self.avahi.service_browser_free(browser) }
        self.browser = nil
        guard let client = self.client else { throw self.failure("browse the network") }
        self.browser = self.avahi.service_browser_new(
            client, AvahiIfIndex(AVAHI_IF_UNSPEC), AvahiProtocol(AVAHI_PROTO_UNSPEC), type, nil, AVAHI_LOOKUP_USE_MULTICAST,
            { _, interface, proto, event, name, _, _, flags, context in
                guard let link = AvahiClientLink.link(context) else { return }
                // Only our own instances of this connection: another node behind the same daemon is a peer.
                let isOwn = flags.rawValue & AVAHI_LOOKUP_RESULT_OUR_OWN.rawValue != 0
                let error = link.failure("").code
                if let signal = link.signal(for: event, interface: interface, proto: proto, name: name, isOwn: isOwn, error: error) {
                    link.signals.append(signal)
                }
            }, self.context)
        guard self.browser != nil else { throw self.failure("browse the network") }
    }

    func openResolver(_ key: Sighting.Key, type: String) throws(AvahiFailure) {
        self.closeResolver(key)
        guard let client = self.client else { throw self.failure("resolve a peer") }
        let proto = self.proto(of: key)
        let resolver = self.avahi.service_resolver_new(
            client, key.interfaceIndex, proto, key.instanceName, type, nil, proto, AVAHI_LOOKUP_USE_MULTICAST,
            { _, interface, proto, event, name, _, _, host, address, port, txt, _, context in
                guard let link = AvahiClientLink.link(context), let name else { return }
                let key = Sighting.Key(
                    instanceName: String(cString: name), interfaceIndex: interface, overIPv6: proto == AvahiProtocol(AVAHI_PROTO_INET6))
                let strings = TXTRecord.strings(of: txt, lastFirst: false)
                link.signals.append(link.signal(for: event, key: key, host: host, address: address, port: port, txt: strings))
            }, self.context)
        guard let resolver else { throw self.failure("resolve a peer") }
        self.resolvers[key] = resolver
    }

    func closeResolver(_ key: Sighting.Key) {
        if let resolver = self.resolvers.removeValue(forKey: key) { _ = self.avahi.service_resolver_free(resolver) }
    }

    func openAddresses(_ key: Sighting.Key, host: String) throws(AvahiFailure) {
        self.closeAddresses(key)
        guard let client = self.client else { throw self.failure("resolve a peer") }
        let browser = self.avahi.record_browser_new(
            client, key.interfaceIndex, self.proto(of: key), host, UInt16(AVAHI_DNS_CLASS_IN), self.addressType(of: key),
            AVAHI_LOOKUP_USE_MULTICAST,
            { browser, _, _, event, _, _, _, data, size, _, context in
                guard let link = AvahiClientLink.link(context), let browser, let key = link.addressKeys[browser] else { return }
                if let signal = link.signal(for: event, key: key, bytes: UnsafeRawBufferPointer(start: data, count: size)) {
                    link.signals.append(signal)
                }
            }, self.context)
        guard let browser else { throw self.failure("resolve a peer") }
        self.addressBrowsers[key] = browser
        self.addressKeys[browser] = key
    }

    func closeAddresses(_ key: Sighting.Key) {
        guard let browser = self.addressBrowsers.removeValue(forKey: key) else { return }
        self.addressKeys[browser] = nil
        _ = self.avahi.record_browser_free(browser)
    }

    /// Makes a call that changes nothing, and that libavahi-client cannot answer from its own memory. A refusal is an answer too:
    /// avahi-daemon creates no entry group if users may not publish.
    func ping() throws(AvahiFailure) {
        guard let client = self.client else { throw self.failure("reach avahi-daemon") }
        do throws(AvahiFailure) {
            try self.timed { () throws(AvahiFailure) in
                self.pulse = self.pulse ?? self.avahi.entry_group_new(client, { _, _, _ in }, nil)
                guard let pulse = self.pulse, self.avahi.entry_group_is_empty(pulse) >= 0 else { throw self.failure("discover peers") }
            }
        } catch  where error.isRefusal {
            return
        } catch {
            throw AvahiFailure(code: Int32(AVAHI_ERR_TIMEOUT), attempt: "discover peers")
        }
    }

    var followsAddresses: Bool { false }
    func refresh() {}
}
