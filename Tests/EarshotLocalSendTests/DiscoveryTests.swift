import EarshotCore
import EarshotWire
import Logging
import NIOCore
import NIOEmbedded
import NIOPosix
import Synchronization
import Testing

@testable import Earshot
@testable import EarshotLocalSend

@Suite(.timeLimit(.minutes(1))) struct DiscoveryTests {
    private static let own = String(repeating: "AB", count: 32)
    private static let other = String(repeating: "cd", count: 32)

    private static func json(_ fingerprint: String, announce: String = "true", port: Int = 1234) -> ByteBuffer {
        ByteBuffer(
            string: """
                {"alias":"phone","version":"2.1","deviceModel":null,"deviceType":"mobile","fingerprint":"\(fingerprint)","port":\(port),\
                "protocol":"https","download":false,"announce":\(announce)}
                """)
    }

    /// Feeds datagrams from 127.0.0.1, or another address, to the handler of a socket.
    private func reports(
        of datagrams: [ByteBuffer], from host: String = "127.0.0.1"
    ) async throws -> (reports: [String], excess: Int, malformed: Int) {
        let node = TestNode()
        let counts = DatagramCounts()
        let channel = NIOAsyncTestingChannel()
        try await channel.testingEventLoop.executeInContext {
            try channel.pipeline.syncOperations.addHandler(
                AnnouncementHandler(ownFingerprint: Self.own, links: CurrentLinks(), counts: counts) {
                    node.deviceAnnounced($0, from: $1, isAnswer: $2)
                })
        }
        for datagram in datagrams {
            let remote = try SocketAddress(ipAddress: host, port: 53317)
            try await channel.writeInbound(AddressedEnvelope(remoteAddress: remote, data: datagram))
        }
        let reports = node.calls.compactMap { call -> String? in
            guard case .announced(let info, let address, let isAnswer) = call else { return nil }
            return "\(info.alias) \(info.fingerprint.prefix(2)) \(address) \(isAnswer ? "answer" : "announcement")"
        }
        return (reports, counts.dropped.excess, counts.dropped.malformed)
    }

    @Test func `announcements and answers of others are reported`() async throws {
        let result = try await self.reports(of: [
            Self.json(Self.other), Self.json(Self.other.uppercased(), announce: "false", port: 0), Self.json("", announce: "null"),
        ])
        #expect(
            result.reports == [
                "phone cd 127.0.0.1:1234 announcement", "phone cd 127.0.0.1:53317 answer", "phone  127.0.0.1:1234 announcement",
            ])
    }

    @Test func `our own announcements are ignored, in either case`() async throws {
        let result = try await self.reports(of: [Self.json(Self.own), Self.json(Self.own.lowercased())])
        #expect(result.reports == [])
        #expect(result.malformed == 0)
    }

    @Test func `a UDP port that another program has to itself is reported`() async throws {
        let loop = MultiThreadedEventLoopGroup.singleton.any()
        let other = try await DatagramBootstrap(group: loop).bind(host: "0.0.0.0", port: 0).get()
        let port = UInt16(clamping: other.localAddress?.port ?? 0)
        let multicast = DeviceMulticast(port: port, on: loop, logger: Logger(label: "test"))
        await multicast.start(ownFingerprint: Self.own, links: CurrentLinks()) { _, _, _ in }
        #expect(multicast.failure == "announcements to UDP \(port) of 0.0.0.0 are not received: Address already in use")
        multicast.stop()
        try await other.close()
    }

    @Test func `malformed datagrams are counted`() async throws {
        let longest = LocalSendLimits.datagramBytes
        func padded(_ bytes: Int) -> ByteBuffer {
            var buffer = Self.json(Self.other)
            buffer.writeRepeatingByte(UInt8(ascii: " "), count: bytes - buffer.readableBytes)
            return buffer
        }
        let result = try await self.reports(of: [
            ByteBuffer(), ByteBuffer(string: "[]"), ByteBuffer(repeating: 0xFF, count: 100), padded(longest + 1), padded(longest),
            Self.json(Self.other, announce: "1"),
        ])
        #expect(result.reports.count == 1)
        #expect(result.malformed == 5)
    }

    @Test func `other networks are not heard`() async throws {
        let result = try await self.reports(of: [Self.json(Self.other)], from: "203.0.113.1")
        #expect(result.reports == [])
        #expect(result.malformed == 1)
    }

    @Test func `a flood is dropped before it is decoded`() async throws {
        let result = try await self.reports(of: Array(repeating: Self.json(Self.other), count: 10_000))
        #expect(result.reports.count >= LocalSendLimits.datagramsPerSecondAndAddress)
        #expect(result.reports.count + result.excess == 10_000)
        #expect(result.reports.count < 200)
    }

    @Test func `two devices on this machine hear each other`() async throws {
        // A port of the test's own, so that it hears no real device.
        let multicastPort = UInt16.random(in: 40_000..<60_000)
        func device() -> LocalSendTransport {
            LocalSendTransport(.init(port: 0, multicastPort: multicastPort, stateDirectory: nil), logger: quietLogger)
        }
        let (first, second) = (device(), device())
        let (firstNode, secondNode) = (TestNode(), TestNode())
        let port = try await first.start(firstNode)
        _ = try await second.start(secondNode)
        let fingerprint = try #require(first.identity).id.bytes.hexadecimal
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await first.run() }
            group.addTask { await second.run() }
            for isAnswer in [false, true] {
                if isAnswer { await first.answerByDatagram("alice") } else { await first.announce("alice") }
                await secondNode.call {
                    guard case .announced(let info, let address, isAnswer) = $0 else { return false }
                    return info.alias == "alice" && info.fingerprint == fingerprint && info.port == port && address.port == port
                }
            }
            group.cancelAll()
        }
        #expect(!firstNode.calls.contains { if case .announced = $0 { true } else { false } })
    }
}
