import CAvahi
import Earshot
import Logging
import Synchronization

/// A responder in this process: libavahi-core, for machines without avahi-daemon.
///
/// It publishes nothing about the host (no addresses, workstation, HINFO or domain records). It uses a random host name of its own and adds
/// that name's addresses itself, without reverse records, because those would collide between two such processes on one machine, above all
/// for 127.0.0.1.
final class AvahiServerLink: AvahiLink {
    var signals: [AvahiSignal] = []
    private let loop: AvahiLoop
    private let avahi: earshot_avahi_core
    /// The packet filter, which lives as long as the server.
    private var screen: ScreenedPoll?
    private var server: OpaquePointer?
    private var group: OpaquePointer?
    private var browser: OpaquePointer?
    private var resolvers: [Sighting.Key: OpaquePointer] = [:]
    private var addressBrowsers: [Sighting.Key: OpaquePointer] = [:]
    /// The instance of each address browser, whose callback names only the host.
    private var addressKeys: [OpaquePointer: Sighting.Key] = [:]
    /// One group per address, so that the loss of one address leaves the others unchanged.
    private var addresses: [NetworkInterface.LocalAddress: OpaquePointer] = [:]

    /// Creates a link; `nil` if libavahi-core cannot be loaded.
    init?(loop: AvahiLoop, logger: Logger) {
        var avahi = earshot_avahi_core()
        guard earshot_avahi_core_load(&avahi) != 0 else { return nil }
        self.avahi = avahi
        self.loop = loop
        Self.logger.withLock { $0 = logger }
        avahi.set_log_function { level, text in AvahiServerLink.log(level, text) }
    }

    /// The context of the callbacks. Not retained: `disconnect` frees every Avahi object that holds it, and the engine calls that before it
    /// releases the link.
    private var context: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

    private static func link(_ context: UnsafeMutableRawPointer?) -> AvahiServerLink? {
        context.map { Unmanaged<AvahiServerLink>.fromOpaque($0).takeUnretainedValue() }
    }

    func connect() throws(AvahiFailure) {
        self.disconnect()
        var config = AvahiServerConfig()
        _ = self.avahi.server_config_init(&config)
        defer { self.avahi.server_config_free(&config) }
        config.host_name = avahi_strdup("earshot-" + String(UInt64.random(in: .min ... .max), radix: 16))
        config.publish_addresses = 0
        config.publish_hinfo = 0
        config.publish_workstation = 0
        config.publish_domain = 0
        config.enable_wide_area = 0
        var error: CInt = 0
        let screen = self.loop.poll.map { ScreenedPoll($0) { AvahiServerLink.notePassedOver() } }
        self.screen = screen
        self.server = self.avahi.server_new(
            screen.map { UnsafePointer($0.poll) }, &config,
            { server, state, context in AvahiServerLink.link(context)?.serverChanged(server, state) }, self.context, &error)
        guard self.server != nil else {
            self.signals.removeAll()
            self.screen = nil
            throw AvahiFailure(code: error, attempt: "start the embedded responder")
        }
        self.refresh()
    }

    private func serverChanged(_ server: OpaquePointer?, _ state: AvahiServerState) {
        switch state {
        case AVAHI_SERVER_RUNNING: self.signals.append(.up)
        case AVAHI_SERVER_REGISTERING: self.signals.append(.paused)
        case AVAHI_SERVER_COLLISION:
            self.signals.append(.down(Self.hostNameTaken))
        case AVAHI_SERVER_FAILURE:
            self.signals.append(.down(AvahiFailure(code: self.avahi.server_errno(server), attempt: "run the embedded responder")))
        default: break
        }
    }

    func disconnect() {
        for key in Array(self.resolvers.keys) { self.closeResolver(key) }
        for key in Array(self.addressBrowsers.keys) { self.closeAddresses(key) }
        if let browser = self.browser { self.avahi.s_service_browser_free(browser) }
        if let group = self.group { self.avahi.s_entry_group_free(group) }
        for group in self.addresses.values { self.avahi.s_entry_group_free(group) }
        // This says goodbye on the network.
        if let server = self.server { self.avahi.server_free(server) }
        self.server = nil
        self.screen = nil
        self.group = nil
        self.browser = nil
        self.addresses.removeAll()
        self.signals.removeAll()
    }

    private func failure(_ attempt: String) -> AvahiFailure {
        AvahiFailure(code: self.server.map { self.avahi.server_errno($0) } ?? Int32(AVAHI_ERR_BAD_STATE), attempt: attempt)
    }

    func publish(name: String, type: String, port: UInt16, txt: [[UInt8]]) throws(AvahiFailure) {
        self.unpublish()
        let attempt = "advertise on the network"
        guard let server = self.server else { throw self.failure(attempt) }
        guard
            let group = self.avahi.s_entry_group_new(
                server,
                { server, _, state, context in AvahiServerLink.link(context)?.groupChanged(server, state) }, self.context)
        else { throw self.failure(attempt) }
        self.group = group
        let code = TXTRecord.withList(txt) { list in
            self.avahi.server_add_service_strlst(
                server, group, AvahiIfIndex(AVAHI_IF_UNSPEC), AvahiProtocol(AVAHI_PROTO_UNSPEC), AvahiPublishFlags(rawValue: 0), name, type,
                nil, nil, port, list)
        }
        guard code >= 0 else { throw AvahiFailure(code: code, attempt: attempt) }
        let committed = self.avahi.s_entry_group_commit(group)
        guard committed >= 0 else { throw AvahiFailure(code: committed, attempt: attempt) }
    }

    /// Handles a claim of another host to this random host name. Avahi has withdrawn its addresses, without which no peer reaches the
    /// service.
    private func addressGroupChanged(_ state: AvahiEntryGroupState) {
        guard state == AVAHI_ENTRY_GROUP_COLLISION else { return }
        self.signals.append(.down(Self.hostNameTaken))
    }

    /// The error for a claimed host name. The next connection uses another name.
    private static var hostNameTaken: AvahiFailure {
        AvahiFailure(code: Int32(AVAHI_ERR_COLLISION), attempt: "keep the embedded responder's host name")
    }

    private func groupChanged(_ server: OpaquePointer?, _ state: AvahiEntryGroupState) {
        switch state {
        case AVAHI_ENTRY_GROUP_ESTABLISHED: self.signals.append(.published)
        case AVAHI_ENTRY_GROUP_COLLISION: self.signals.append(.publicationCollided)
        case AVAHI_ENTRY_GROUP_FAILURE:
            self.signals.append(
                .publicationFailed(AvahiFailure(code: self.avahi.server_errno(server), attempt: "advertise on the network")))
        default: break
        }
    }

    func unpublish() {
        if let group = self.group { self.avahi.s_entry_group_free(group) }
        self.group = nil
        self.signals.dropPublication()
    }

    func browse(type: String) throws(AvahiFailure) {
        if let browser = self.browser { self.avahi.s_service_browser_free(browser) }
        self.browser = nil
        guard let server = self.server else { throw self.failure("browse the network") }
        self.browser = self.avahi.s_service_browser_new(
            server, AvahiIfIndex(AVAHI_IF_UNSPEC), AvahiProtocol(AVAHI_PROTO_UNSPEC), type, nil, AVAHI_LOOKUP_USE_MULTICAST,
            { _, interface, proto, event, name, _, _, flags, context in
                guard let link = AvahiServerLink.link(context) else { return }
                // Instances local to this responder, which serves only this process.
                let isOwn = flags.rawValue & AVAHI_LOOKUP_RESULT_LOCAL.rawValue != 0
                let error = link.failure("").code
                if let signal = link.signal(for: event, interface: interface, proto: proto, name: name, isOwn: isOwn, error: error) {
                    link.signals.append(signal)
                }
            }, self.context)
        guard self.browser != nil else { throw self.failure("browse the network") }
    }

    func openResolver(_ key: Sighting.Key, type: String) throws(AvahiFailure) {
        self.closeResolver(key)
        guard let server = self.server else { throw self.failure("resolve a peer") }
        let proto = self.proto(of: key)
        let resolver = self.avahi.s_service_resolver_new(
            server, key.interfaceIndex, proto, key.instanceName, type, nil, proto, AVAHI_LOOKUP_USE_MULTICAST,
            { _, interface, proto, event, name, _, _, host, address, port, txt, _, context in
                guard let link = AvahiServerLink.link(context), let name else { return }
                let key = Sighting.Key(
                    instanceName: String(cString: name), interfaceIndex: interface, overIPv6: proto == AvahiProtocol(AVAHI_PROTO_INET6))
                let strings = TXTRecord.strings(of: txt, lastFirst: true)
                link.signals.append(link.signal(for: event, key: key, host: host, address: address, port: port, txt: strings))
            }, self.context)
        guard let resolver else { throw self.failure("resolve a peer") }
        self.resolvers[key] = resolver
    }

    func closeResolver(_ key: Sighting.Key) {
        if let resolver = self.resolvers.removeValue(forKey: key) { self.avahi.s_service_resolver_free(resolver) }
    }

    func openAddresses(_ key: Sighting.Key, host: String) throws(AvahiFailure) {
        self.closeAddresses(key)
        guard let server = self.server,
            let record = self.avahi.key_new(host, UInt16(AVAHI_DNS_CLASS_IN), self.addressType(of: key))
        else { throw self.failure("resolve a peer") }
        defer { self.avahi.key_unref(record) }
        let browser = self.avahi.s_record_browser_new(
            server, key.interfaceIndex, self.proto(of: key), record, AVAHI_LOOKUP_USE_MULTICAST,
            { browser, _, _, event, record, _, context in
                guard let link = AvahiServerLink.link(context), let browser, let record, let key = link.addressKeys[browser] else { return }
                let signal =
                    key.overIPv6
                    ? withUnsafeBytes(of: &record.pointee.data.aaaa.address) { link.signal(for: event, key: key, bytes: $0) }
                    : withUnsafeBytes(of: &record.pointee.data.a.address) { link.signal(for: event, key: key, bytes: $0) }
                if let signal { link.signals.append(signal) }
            }, self.context)
        guard let browser else { throw self.failure("resolve a peer") }
        self.addressBrowsers[key] = browser
        self.addressKeys[browser] = key
    }

    func closeAddresses(_ key: Sighting.Key) {
        guard let browser = self.addressBrowsers.removeValue(forKey: key) else { return }
        self.addressKeys[browser] = nil
        self.avahi.s_record_browser_free(browser)
    }

    /// Does nothing: the responder lives in this process.
    func ping() throws(AvahiFailure) {}

    /// Returns the addresses to publish. If there are too many, the choice is stable, because each change would be announced.
    static func published(of interfaces: [Int32: NetworkInterface]) -> Set<NetworkInterface.LocalAddress> {
        let usable = interfaces.values.filter(\.isUsable).sorted { $0.index < $1.index }.flatMap(\.addresses)
        return Set(usable.prefix(DiscoveryLimits.localAddresses))
    }

    /// `true`: `refresh` publishes new addresses and withdraws lost ones.
    var followsAddresses: Bool { true }

    func refresh() {
        // If the addresses are not known, nothing is withdrawn.
        guard let server = self.server, let interfaces = NetworkInterface.all() else { return }
        let current = Self.published(of: interfaces)
        for (address, group) in self.addresses where !current.contains(address) {
            self.avahi.s_entry_group_free(group)
            self.addresses[address] = nil
        }
        for address in current where self.addresses[address] == nil {
            guard
                let group = self.avahi.s_entry_group_new(
                    server, { _, _, state, context in AvahiServerLink.link(context)?.addressGroupChanged(state) }, self.context)
            else { continue }
            var record = AvahiAddress()
            record.proto = AvahiProtocol(address.bytes.count == 4 ? AVAHI_PROTO_INET : AVAHI_PROTO_INET6)
            withUnsafeMutableBytes(of: &record.data) { $0.copyBytes(from: address.bytes) }
            let added = self.avahi.server_add_address(
                server, group, address.interfaceIndex, AvahiProtocol(AVAHI_PROTO_UNSPEC), AVAHI_PUBLISH_NO_REVERSE, nil, &record)
            // A refused address is retried with the next refresh.
            if added >= 0, self.avahi.s_entry_group_commit(group) >= 0 {
                self.addresses[address] = group
            } else {
                self.avahi.s_entry_group_free(group)
            }
        }
    }
}

extension AvahiServerLink {
    /// The logger for libavahi-core, which has one log per process and would otherwise write to standard error.
    private static let logger = Mutex<Logger?>(nil)

    private static let hasPassedOver = Mutex(false)

    /// Logs the first discarded packet of the process only, because anyone can send any number.
    private static func notePassedOver() {
        let isFirst = self.hasPassedOver.withLock { hasPassedOver in
            defer { hasPassedOver = true }
            return !hasPassedOver
        }
        guard isFirst else { return }
        self.logger.withLock { $0 }?.info(
            "a multicast packet with an alias (CNAME), or that is not well-formed, was passed over; others will be without a word")
    }

    private static func log(_ level: AvahiLogLevel, _ text: UnsafePointer<CChar>?) {
        guard let text, let logger = self.logger.withLock({ $0 }) else { return }
        // Its warnings concern other stacks and odd packets, and interest only developers.
        logger.log(level: level == AVAHI_LOG_ERROR ? .warning : .debug, "embedded responder: \(String(cString: text))")
    }
}
