import Earshot
import Foundation
import NIOCore
import Testing

@testable import MultipeerConnectivity

/// The formats that this module writes into invitations, messages and advertisements, and reads from those of peers.
@Suite struct FormatTests {
    @Test func contextsSurviveTheirEnvelope() throws {
        for envelope in [
            Envelope.introduced, .invitation(type: "a", context: nil), .invitation(type: "my-type", context: Data()),
            .invitation(type: "my-type", context: Data([0, 255])),
        ] {
            let bytes = try #require(envelope.bytes)
            #expect(Envelope(bytes) == envelope)
            for length in 0..<bytes.count where envelope != .invitation(type: "my-type", context: Data([0, 255])) {
                #expect(Envelope(Array(bytes.prefix(length))) == nil)
            }
        }
        #expect(Envelope.invitation(type: "a", context: Data(count: Envelope.contextLimit)).bytes != nil)
        #expect(Envelope.invitation(type: "a", context: Data(count: Envelope.contextLimit + 1)).bytes == nil)
        for garbage in ["", "EMC1", "EMC1\u{3}", "EMC2\u{2}", "EMC1\u{2}x", "EMC1\u{0}\u{1}A", "EMC1\u{0}\u{1}ax", "hello"] {
            #expect(Envelope(Array(garbage.utf8)) == nil, "\(garbage.debugDescription)")
        }
    }

    @Test func discoveryInfoSurvivesTheRecord() throws {
        let info = ["room": "kitchen", "ID": "x", "v": "", "_v": "y", "__": "z", "Zoom": "ö"]
        let own = [
            TXTPair(key: "v", value: Array("1".utf8)), TXTPair(key: "id", value: Array(PeerID(subjectPublicKeyInfo: [1]).description.utf8)),
        ]
        let read = try #require(ServiceNames.read(own + (try ServiceNames.pairs(of: info))))
        #expect(read.id == PeerID(subjectPublicKeyInfo: [1]) && read.info == info)
        #expect(ServiceNames.read([]) == nil)
        #expect(throws: MCError.self) { try ServiceNames.pairs(of: ["": "x"]) }
        #expect(throws: MCError.self) { try ServiceNames.pairs(of: ["a=b": "x"]) }
        #expect(throws: MCError.self) { try ServiceNames.pairs(of: ["ä": "x"]) }
        #expect(try ServiceNames.pairs(of: ["a": String(repeating: "x", count: 253)]).count == 1)
        #expect(throws: MCError.self) { try ServiceNames.pairs(of: ["a": String(repeating: "x", count: 254)]) }
        let many = Dictionary(uniqueKeysWithValues: (0..<6).map { ("\($0)", String(repeating: "x", count: 220)) })
        #expect(throws: MCError.self) { try ServiceNames.pairs(of: many) }
    }

    @Test func whomABrowserSees() throws {
        var crowd = Crowd()
        let ids = [PeerID(subjectPublicKeyInfo: [1]), PeerID(subjectPublicKeyInfo: [2])]
        func sighting(_ id: PeerID, _ name: String, _ interface: Int32, port: UInt16 = 1, room: String = "") -> Sighting {
            Sighting(
                key: Sighting.Key(instanceName: name, interfaceIndex: interface, overIPv6: false), interfaceName: "eth\(interface)",
                isLoopback: false, addresses: [], port: port,
                txt: [TXTPair(key: "id", value: Array(id.description.utf8)), TXTPair(key: "room", value: Array(room.utf8))])
        }
        func told(_ event: DiscoveryEvent) -> [String] {
            crowd.news(of: event).map { news in
                switch news {
                case .found(let id, _, _): "+\(ids.firstIndex(of: id) ?? -1)"
                case .lost(let id): "-\(ids.firstIndex(of: id) ?? -1)"
                case .failed: "!"
                }
            }
        }
        #expect(told(.found(.avahi, sighting(ids[0], "a", 1))) == ["+0"])
        #expect(told(.found(.avahi, sighting(ids[0], "a", 2))) == [])
        #expect(told(.lost(.avahi, sighting(ids[0], "a", 1).key)) == [])
        #expect(told(.found(.avahi, sighting(ids[1], "a", 2))) == ["-0", "+1"])
        #expect(told(.found(.embedded, sighting(ids[0], "b", 2))) == ["+0"])
        // A program that has started again listens elsewhere, which each of its interfaces shows in turn.
        #expect(told(.found(.embedded, sighting(ids[0], "b", 3))) == [])
        #expect(told(.found(.embedded, sighting(ids[0], "b", 2, port: 2))) == ["-0", "+0"])
        #expect(told(.found(.embedded, sighting(ids[0], "b", 3, port: 2))) == [])
        // The program's discovery info has changed.
        #expect(told(.found(.embedded, sighting(ids[0], "b", 2, port: 2, room: "hall"))) == ["-0", "+0"])
        #expect(told(.found(.embedded, sighting(ids[0], "b", 3, port: 2, room: "hall"))) == [])
        #expect(told(.reset(.avahi)) == ["-1"])
        #expect(told(.status(DiscoveryStatus(backend: .embedded, state: .unavailable, error: "x"))) == ["!"])
    }

    /// Avahi has returned, and sees the peer that the embedded responder saw before. The reset removes the embedded responder's sighting
    /// from the node.
    @Test func whatOneBackendSawIsLostThoughAnotherSeesIt() {
        var relay = Relay(serviceType: "my-type")
        func sighting(_ name: String) -> Sighting {
            Sighting(
                key: Sighting.Key(instanceName: name, interfaceIndex: 1, overIPv6: false), interfaceName: "lo", isLoopback: true,
                addresses: [], port: 1, txt: [])
        }
        func told(_ event: DiscoveryEvent) -> [DiscoveryEvent] { relay.told(event) }
        let (given, own) = (sighting("bob"), sighting("bob._my-type"))
        #expect(told(.found(.embedded, given)) == [.found(.embedded, own)])
        #expect(told(.found(.avahi, given)) == [.found(.avahi, own)])
        #expect(told(.reset(.embedded)) == [.lost(.embedded, own.key)])
        #expect(told(.reset(.embedded)) == [])
        #expect(told(.lost(.avahi, given.key)) == [.lost(.avahi, own.key)])
        #expect(told(.reset(.avahi)) == [])
    }

    @Test func partsOfLongData() throws {
        let long = Data(repeating: 7, count: (2 << 20) + 5)
        let drafts = OutgoingData(long).drafts(to: PeerID(subjectPublicKeyInfo: [1]))
        #expect(drafts.map(\.body.readableBytes) == [1 << 20, 1 << 20, 5])
        var parts = IncomingParts()
        for draft in drafts.dropLast() {
            let isNext = parts.add(draft.body, contentType: draft.contentType)
            #expect(isNext)
        }
        #expect(parts.whole(with: try #require(drafts.last).body) == long)
        var gap = IncomingParts()
        let isNext = gap.add(drafts[1].body, contentType: drafts[1].contentType)
        #expect(!isNext)
        #expect(OutgoingData(Data()).drafts(to: PeerID(subjectPublicKeyInfo: [1])).count == 1)
    }
}
