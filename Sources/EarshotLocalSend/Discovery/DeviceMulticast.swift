internal import CLinux
import Earshot
import EarshotCore
import Logging
import NIOCore
import NIOPosix
import Synchronization

#if canImport(Glibc)
    import Glibc
#endif

/// The multicast announcements: one receiving socket for IPv4 and one for IPv6, joined to LocalSend's groups on every link, and a socket for
/// each sent datagram, because the interface is a property of the sending socket. The port is shared with other programs of this machine.
final class DeviceMulticast: Sendable {
    private static let onlyIPv6 = ChannelOptions.Types.SocketOption(level: .ipv6, name: NIOBSDSocket.Option(rawValue: IPV6_V6ONLY))

    private struct State {
        var channels: [any Channel] = []
        /// The links that are joined, as text.
        var joined: Set<String> = []
        var failure: String?
    }

    let counts = DatagramCounts()
    private let port: UInt16
    private let loop: any EventLoop
    private let logger: Logger
    private let state = Mutex(State())

    /// Why announcements of one protocol or both are not received, although this machine has the protocol.
    var failure: String? { self.state.withLock { $0.failure } }

    init(port: UInt16, on loop: any EventLoop, logger: Logger) {
        self.port = port
        self.loop = loop
        self.logger = logger
    }

    /// Opens the sockets and joins the groups. A machine without IPv6, or without any network, announces nothing there.
    func start(
        ownFingerprint: String, links: CurrentLinks, report: @escaping @Sendable (DeviceInfo, PeerAddress, _ isAnswer: Bool) -> Void
    ) async {
        for host in ["0.0.0.0", "::"] {
            let counts = self.counts
            var bootstrap = DatagramBootstrap(group: self.loop)
                .channelOption(.socketOption(.so_reuseaddr), value: 1)
                .channelOption(.socketOption(NIOBSDSocket.Option(rawValue: SO_REUSEPORT)), value: 1)
                // A longer datagram shows by one byte more.
                .channelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: LocalSendLimits.datagramBytes + 1))
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHandler(
                            AnnouncementHandler(ownFingerprint: ownFingerprint, links: links, counts: counts, report: report))
                    }
                }
            if host == "::" { bootstrap = bootstrap.channelOption(Self.onlyIPv6, value: 1) }
            do {
                let channel = try await bootstrap.bind(to: SocketAddress(ipAddress: host, port: Int(self.port))).get()
                self.state.withLock { $0.channels.append(channel) }
            } catch let error as IOError where error.isOfMissingProtocol {
                continue
            } catch {
                let reason = "announcements to UDP \(self.port) of \(host) are not received: \(DeviceClient.reason(error))"
                self.state.withLock { $0.failure = reason }
                self.logger.warning("LocalSend devices may not be found", metadata: ["reason": "\(reason)"])
            }
        }
        _ = self.join()
    }

    /// Joins the groups on links that are new. Returns whether the links have changed since the last call.
    func join() -> Bool {
        let devices = Self.devices()
        let links = Set(devices.map { "\($0.interfaceIndex) \($0.name) \($0.address?.description ?? "")" })
        let (channels, isChanged) = self.state.withLock { state in
            defer { state.joined = links }
            return (state.channels, state.joined != links)
        }
        guard isChanged else { return false }
        for channel in channels {
            guard let channel = channel as? any MulticastChannel, let own = channel.localAddress, let group = Self.group(own.protocol)
            else {
                continue
            }
            for device in devices where device.address?.protocol == own.protocol {
                // Fails if the interface has joined already, by another of its addresses or before.
                channel.joinGroup(group, device: device, promise: nil)
            }
        }
        return true
    }

    /// Sends a datagram to both groups on every link.
    func send(_ datagram: ByteBuffer) {
        var sent: Set<String> = []
        for device in Self.devices() {
            guard let family = device.address?.protocol, let group = Self.group(family).flatMap(LocalLinks.bytes),
                let index = UInt32(exactly: device.interfaceIndex), sent.insert("\(index) \(family)").inserted
            else { continue }
            let result = datagram.withUnsafeReadableBytes { bytes in
                earshot_send_to_group(group, group.count, self.port, index, bytes.baseAddress, bytes.count)
            }
            guard result != 0 else { continue }
            self.logger.debug(
                "an announcement was not sent", metadata: ["interface": "\(device.name)", "error": "\(String(cString: strerror(errno)))"])
        }
    }

    func stop() {
        let channels = self.state.withLock { state in
            defer { state.channels = [] }
            return state.channels
        }
        for channel in channels { channel.close(promise: nil) }
    }

    /// Returns this machine's addresses on interfaces with multicast, which the loopback interface usually does not have.
    private static func devices() -> [NIONetworkDevice] {
        ((try? System.enumerateDevices()) ?? []).filter { $0.multicastSupported }
    }

    private static func group(_ family: NIOBSDSocket.ProtocolFamily) -> SocketAddress? {
        switch family {
        case .inet: try? SocketAddress(ipAddress: LocalSendLimits.groupIPv4, port: 0)
        case .inet6: try? SocketAddress(ipAddress: LocalSendLimits.groupIPv6, port: 0)
        default: nil
        }
    }
}
