import EarshotWire
import NIOCore
import Testing

@testable import Earshot

@Suite struct LocalLinksTests {
    private let links = LocalLinks(links: [
        .init(interface: "lo", address: [127, 0, 0, 1], prefix: [255, 0, 0, 0]),
        .init(interface: "eth0", address: [10, 77, 0, 2], prefix: [255, 255, 255, 0]),
        .init(interface: "eth0", address: [0xFD, 0] + [UInt8](repeating: 0, count: 13) + [2], prefix: Self.prefix64),
        .init(interface: "eth0", address: [0xFE, 0x80] + [UInt8](repeating: 0, count: 13) + [2], prefix: Self.prefix64),
    ])

    private static let prefix64 = [UInt8](repeating: 255, count: 8) + [UInt8](repeating: 0, count: 8)

    private func permits(_ host: String, on interface: String = "eth0", fromLoopback: Bool = false) throws -> Bool {
        let address = try #require(PeerAddress(host: host, interface: interface, port: 47110))
        return self.links.permit(address, fromLoopback: fromLoopback)
    }

    @Test(arguments: ["10.77.0.1", "10.77.0.254", "fd00::7"]) func onLinkIsPermitted(host: String) throws {
        #expect(try self.permits(host))
        #expect(try self.permits(host, fromLoopback: true))
    }

    @Test(arguments: ["10.77.1.1", "10.76.255.255", "192.0.2.1", "fd00:0:0:1::7", "2001:db8::1"]) func offLinkIsRefused(host: String) throws
    {
        #expect(try !self.permits(host))
    }

    @Test(arguments: ["127.0.0.1", "127.8.9.10", "::1"]) func loopbackIsOnlyForRecordsFromLoopback(host: String) throws {
        #expect(try !self.permits(host))
        #expect(try self.permits(host, fromLoopback: true))
    }

    @Test(arguments: [
        "0.0.0.0", "0.1.2.3", "224.0.0.251", "239.1.1.1", "255.255.255.255", "::", "ff02::fb", "::ffff:10.77.0.1", "::ffff:127.0.0.1",
    ])
    func nobodysAddressesAreRefused(host: String) throws {
        #expect(try !self.permits(host))
        #expect(try !self.permits(host, fromLoopback: true))
    }

    @Test func linkLocalGoesByItsZone() throws {
        // Only an existing zone can be resolved. Every machine has this one.
        let link = LocalLinks(links: [.init(interface: "lo", address: [127, 0, 0, 1], prefix: [255, 0, 0, 0])])
        let here = try #require(PeerAddress(host: "fe80::1", interface: "lo", port: 1))
        #expect(here.zone == "lo")
        #expect(link.permit(here, fromLoopback: false))
        #expect(!LocalLinks(links: []).permit(here, fromLoopback: false))
        let elsewhere = try #require(PeerAddress(host: "fe80::1", interface: "no-such-link", port: 1))
        #expect(!link.permit(elsewhere, fromLoopback: false))
    }

    @Test func withoutLinksOnlyLoopbackIsLeft() throws {
        let none = LocalLinks(links: [])
        #expect(!none.permit(try #require(PeerAddress(host: "10.77.0.1", interface: "eth0", port: 1)), fromLoopback: false))
        #expect(none.permit(try #require(PeerAddress(host: "127.0.0.1", interface: "lo", port: 1)), fromLoopback: true))
        #expect(LocalLinks.current().links.contains { $0.address == [127, 0, 0, 1] })
    }
}

@Suite struct PeerAddressTests {
    @Test func onlyNumericAddressesWithAPort() {
        for host in ["", "bob", "bob.local", "10.0.0", "10.0.0.256", "[::1]", "10.0.0.1 ", "::g"] {
            #expect(PeerAddress(host: host, interface: "eth0", port: 1) == nil, "\(host)")
        }
        #expect(PeerAddress(host: "10.0.0.7", interface: "eth0", port: 0) == nil)
    }

    @Test func isWrittenAsInTheDesign() {
        #expect(PeerAddress(host: "10.0.0.7", interface: "eth0", port: 47110)?.description == "10.0.0.7:47110")
        #expect(PeerAddress(host: "fd00::7", interface: "eth0", port: 1)?.description == "[fd00::7]:1")
        #expect(PeerAddress(host: "fe80::1", interface: "eth0", port: 47110)?.description == "[fe80::1%eth0]:47110")
        #expect(PeerAddress(host: "febf::1", interface: "eth0", port: 1)?.zone == "eth0")
        #expect(PeerAddress(host: "fec0::1", interface: "eth0", port: 1)?.zone == nil)
    }

    @Test func configuredPeersAreRead() throws {
        let id = peerID(1)
        let cases = [
            ("bob:47110", nil, "bob", 47110), ("10.0.0.7:1", nil, "10.0.0.7", 1), ("[fd00::7]:65535", nil, "fd00::7", 65535),
            ("\(id)@bob.example:9", id, "bob.example", 9), ("\(id.description.lowercased())@[::1]:9", id, "::1", 9),
        ]
        for (text, expected, host, port) in cases {
            let peer = try ConfiguredPeer(text)
            #expect(peer.id == expected)
            #expect(peer.host == host)
            #expect(Int(peer.port) == port)
            #expect(try ConfiguredPeer(peer.description) == peer)
        }
    }

    @Test(arguments: [
        "", "bob", "bob:", "bob:0", "bob:65536", "bob:-1", ":47110", "[]:1", "fd00::7:47110", "@bob:1", "short@bob:1", "b ob:1", "bob/x:1",
        "bö:1",
    ]) func otherConfiguredPeersAreRefused(text: String) {
        #expect(throws: EarshotError.self) { try ConfiguredPeer(text) }
    }

    @Test func aConfiguredHostHas253Bytes() throws {
        #expect(try ConfiguredPeer(String(repeating: "a", count: 253) + ":1").port == 1)
        #expect(throws: EarshotError.self) { try ConfiguredPeer(String(repeating: "a", count: 254) + ":1") }
    }
}

@Suite struct DiscoveryInfoTests {
    private func isValid(_ pairs: [String: String]) -> Bool {
        (try? DiscoveryInfo.validate(pairs)) != nil
    }

    @Test func discoveryPairBytes() {
        #expect(self.isValid(["k": String(repeating: "v", count: EarshotLimits.discoveryPairBytes - 2)]))
        #expect(!self.isValid(["k": String(repeating: "v", count: EarshotLimits.discoveryPairBytes - 1)]))
        // The limit is in bytes, not characters.
        #expect(!self.isValid(["k": String(repeating: "é", count: 127)]))
    }

    @Test func discoveryInfoBytes() {
        let half = String(repeating: "v", count: EarshotLimits.discoveryInfoBytes / 2 - "a=".count)
        #expect(self.isValid(["a": half, "b": half]))
        #expect(!self.isValid(["a": half, "b": half + "v"]))
    }

    @Test func reservedAndRepeatedKeysAreInvalid() {
        #expect(self.isValid(["room": "kitchen", "Floor 2": "", "~": "é"]))
        for key in ["", "a=b", "é", "a\u{7F}", "a\tb", "v", "V", "id", "Id", "name", "NAME"] {
            #expect(!self.isValid([key: "x"]), "\(key)")
        }
        #expect(!self.isValid(["room": "1", "ROOM": "2"]))
    }

    @Test func whatAPeerSaysIsReadWithCare() throws {
        let id = peerID(1)
        func pair(_ key: String, _ value: String) -> TXTPair { TXTPair(key: key, value: Array(value.utf8)) }
        let record = [
            pair("ID", id.description), pair("id", peerID(2).description), pair("name", "b\u{7}b"), TXTPair(key: "x", value: [0xFF]),
        ]
        let read = try #require(DiscoveryInfo.read(record, instanceName: "instance"))
        #expect(read.id == id)
        #expect(read.name == "instance")
        #expect(read.pairs.isEmpty)
        #expect(DiscoveryInfo.read([pair("id", "AAAA")], instanceName: "bob") == nil)
        #expect(DiscoveryInfo.read([], instanceName: "bob") == nil)
        let many = [pair("id", id.description)] + (0..<100).map { pair("k\($0)", "v") }
        #expect(DiscoveryInfo.read(many, instanceName: "")?.pairs.count == 64)
        #expect(DiscoveryInfo.read(many, instanceName: "")?.name == id.description)
        let own = DiscoveryInfo.record(id: id, name: try DisplayName("alice"), pairs: ["room": "kitchen"])
        let back = try #require(DiscoveryInfo.read(own, instanceName: "alice #2"))
        #expect(back.id == id && back.name == "alice" && back.pairs == ["room": "kitchen"])
    }
}
