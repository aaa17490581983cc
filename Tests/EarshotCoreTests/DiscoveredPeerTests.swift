import EarshotWire
import OrderedCollections
import Testing

@testable import EarshotCore

/// The rows that result from discovery's events, and the peers that names mean.
@Suite struct DiscoveredPeerTests {
    private let bob = peerID(7)

    /// Returns the kinds of events that were published about a peer.
    private func kinds(_ alice: CoreBench, of id: PeerID) -> [String] {
        alice.events.compactMap { event in
            switch event {
            case .peerFound(let peer) where peer.id == id: "found"
            case .peerChanged(let peer) where peer.id == id: "changed"
            case .peerLost(let peer) where peer.id == id: "lost"
            default: nil
            }
        }
    }

    private func seen(
        _ id: PeerID, _ backend: DiscoveryStatus.Backend = .avahi, interface: Int32 = 1, overIPv6: Bool = false, at hosts: [String]
    ) throws -> Input {
        let sighting = Sighting(
            key: Sighting.Key(instanceName: "bob", interfaceIndex: interface, overIPv6: overIPv6), interfaceName: "eth\(interface)",
            isLoopback: false, addresses: hosts, port: 9, txt: DiscoveryInfo.record(id: id, name: try DisplayName("bob"), pairs: [:]))
        let addresses = hosts.map { PeerAddress(host: $0, zone: $0.hasPrefix("fe80") ? "eth\(interface)" : nil, port: 9) }
        return .discovery(.found(backend, SeenAddresses(sighting: sighting, addresses: addresses)))
    }

    private func key(interface: Int32 = 1) -> Sighting.Key {
        Sighting.Key(instanceName: "bob", interfaceIndex: interface, overIPv6: false)
    }

    /// The pause depends on the machine's id, from half of the longest pause up.
    @Test func pausesBeforePeersOfTheSettings() {
        var reach = Reachability()
        #expect(reach.pause(of: self.bob) == .zero)
        for _ in EarshotLimits.redialDelays { reach.dialFailed(EarshotError(.unavailable, "no answer")) }
        let pauses = (0...255).map { byte in PeerID(bytes: [UInt8](repeating: byte, count: 32)).map { reach.pause(of: $0) } }
        #expect(pauses.first == .seconds(5) && pauses.last == .seconds(5) - .seconds(5) * 255 / 512)
        #expect(Set(pauses).count == 256)
    }

    /// Another machine that advertises this machine's id is reported once, and listed until its last sighting is lost. This machine's own
    /// record is neither reported nor listed.
    @Test func ourIdentityAtAnotherMachine() throws {
        var alice = CoreBench()
        let own = alice.core.id
        func sighting(_ interface: Int32, at host: String, isThisMachine: Bool = false) throws -> Input {
            guard case .discovery(.found(let backend, let seen)) = try self.seen(own, interface: interface, at: [host]) else {
                throw EarshotError(.invalidParameter, "no sighting")
            }
            return .discovery(
                .found(backend, SeenAddresses(sighting: seen.sighting, addresses: seen.addresses, isThisMachine: isThisMachine)))
        }
        func warnings() -> Int { alice.notices.filter { $0.text.hasPrefix("another machine advertises") }.count }
        alice.handle(try sighting(1, at: "10.9.8.7", isThisMachine: true))
        #expect(alice.core.identityCopyAddresses.isEmpty && warnings() == 0)
        alice.handle(try sighting(1, at: "10.9.8.8"))
        alice.handle(try sighting(2, at: "10.5.5.8"))
        #expect(alice.core.identityCopyAddresses.map(\.description) == ["10.9.8.8:9", "10.5.5.8:9"] && warnings() == 1)
        #expect(alice.core.peers.isEmpty)
        alice.handle(.discovery(.lost(.avahi, self.key(interface: 1))))
        #expect(alice.core.identityCopyAddresses.map(\.description) == ["10.5.5.8:9"])
        alice.handle(.discovery(.reset(.avahi)))
        #expect(alice.core.identityCopyAddresses.isEmpty)
        for interface in 1...Int32(EarshotLimits.identityCopies + 1) { alice.handle(try sighting(interface, at: "10.0.0.\(interface)")) }
        #expect(alice.core.identityCopyAddresses.count == EarshotLimits.identityCopies && warnings() == 2)
    }

    @Test func manySightingsAreOneRow() throws {
        var alice = CoreBench()
        alice.handle(try self.seen(self.bob, at: ["10.9.8.7"]))
        alice.handle(try self.seen(self.bob, overIPv6: true, at: ["fe80::7"]))
        alice.handle(try self.seen(self.bob, .embedded, interface: 2, at: ["10.9.8.7", "10.5.5.5"]))
        #expect(alice.core.peers.map(\.id) == [self.bob])
        #expect(alice.core.peers.first?.addresses == ["10.9.8.7:9", "10.5.5.5:9", "[fe80::7%eth1]:9"])
        #expect(alice.core.peers.first?.sources == [.avahi, .embedded])
        #expect(self.kinds(alice, of: self.bob) == ["found", "changed", "changed"])
    }

    @Test func aPeerIsLostAfterTheGracePeriod() throws {
        var alice = CoreBench()
        for interface in [1, 2] as [Int32] { alice.handle(try self.seen(self.bob, interface: interface, at: ["10.9.8.7"])) }
        alice.handle(.discovery(.lost(.avahi, self.key())))
        alice.advance(EarshotLimits.lossGrace)
        #expect(!self.kinds(alice, of: self.bob).contains("lost"), "still seen on the other interface")
        alice.handle(.discovery(.lost(.avahi, self.key(interface: 2))))
        alice.advance(EarshotLimits.lossGrace - .nanoseconds(1))
        #expect(alice.core.peers.count == 1 && !self.kinds(alice, of: self.bob).contains("lost"))
        alice.advance(.nanoseconds(1))
        #expect(self.kinds(alice, of: self.bob).last == "lost")
        #expect(alice.core.peers.isEmpty, "no person acted upon it")
    }

    @Test func aReturnWithinTheGraceIsNoLoss() throws {
        var alice = CoreBench()
        alice.handle(try self.seen(self.bob, at: ["10.9.8.7"]))
        alice.handle(.discovery(.reset(.avahi)))
        alice.advance(EarshotLimits.lossGrace - .seconds(1))
        alice.handle(try self.seen(self.bob, at: ["10.9.8.7"]))
        alice.advance(EarshotLimits.lossGrace + .seconds(1))
        #expect(self.kinds(alice, of: self.bob) == ["found"])
        #expect(alice.core.nextDeadline == nil)
    }

    /// A reset removes only the sightings of its own backend.
    @Test func aResetIsOfOneBackend() throws {
        var alice = CoreBench()
        alice.handle(try self.seen(self.bob, at: ["10.9.8.7"]))
        alice.handle(try self.seen(self.bob, .embedded, at: ["10.9.8.8"]))
        alice.handle(.discovery(.reset(.avahi)))
        #expect(alice.core.records[self.bob]?.presence.sightings.count == 1)
        #expect(alice.core.discovered.sightings == 1)
    }

    /// A record with this machine's own id, or without an id, makes no row.
    @Test func whatIsNoPeerIsNotListed() throws {
        var alice = CoreBench()
        alice.handle(try self.seen(alice.core.id, at: ["10.9.8.7"]))
        let garbage = Sighting(
            key: self.key(), interfaceName: "eth1", isLoopback: false, addresses: ["10.0.0.1"], port: 1,
            txt: [TXTPair(key: "id", value: [0xFF, 0xFE])])
        alice.handle(.discovery(.found(.avahi, SeenAddresses(sighting: garbage, addresses: []))))
        #expect(alice.core.peers.isEmpty && alice.core.records.count == 0)
    }

    @Test func aPeerAboveTheLimitIsIgnored() throws {
        var alice = CoreBench()
        func id(_ number: Int) -> PeerID { PeerID(subjectPublicKeyInfo: [4, UInt8(number >> 8), UInt8(number & 0xFF)]) }
        for number in 0...EarshotLimits.discoveredPeers { try alice.see(id(number), name: "p\(number)") }
        #expect(alice.core.peers.count == EarshotLimits.discoveredPeers)
        #expect(alice.core.records[id(EarshotLimits.discoveredPeers)] == nil)
        // The warning is logged once until there is room again.
        try alice.see(id(EarshotLimits.discoveredPeers + 1), name: "one more")
        #expect(alice.notices.count { $0.text.hasPrefix("too many peers") } == 1)
        // A peer that a user decides about makes room.
        alice.call(.setTrust(.trusted, id(7).description, until: nil))
        try alice.see(id(EarshotLimits.discoveredPeers), name: "one more")
        #expect(alice.core.records[id(EarshotLimits.discoveredPeers)] != nil)
    }

    /// A host that advertises repeatedly under a peer's id leaves a row of bounded size.
    @Test func sightingsPerPeer() throws {
        var alice = CoreBench()
        for number in 0...EarshotLimits.sightingsPerPeer {
            let hosts = (0..<3).map { "10.0.\(number).\($0)" }
            alice.handle(try self.seen(self.bob, interface: Int32(number), at: hosts))
        }
        #expect(alice.core.records[self.bob]?.presence.sightings.count == EarshotLimits.sightingsPerPeer)
        let row = try #require(alice.core.peers.first)
        #expect(row.addresses.count == min(3 * EarshotLimits.sightingsPerPeer, EarshotLimits.addressesPerPeer))
        // The oldest sighting was displaced. Each of the others has its share of the addresses, including the latest.
        #expect(row.addresses.contains("10.0.1.0:9") && !row.addresses.contains("10.0.0.0:9"))
        #expect(row.addresses.contains("10.0.\(EarshotLimits.sightingsPerPeer).1:9"))
        // The displaced sighting is back as soon as there is room, though discovery does not report it again.
        for number in 1...EarshotLimits.sightingsPerPeer { alice.handle(.discovery(.lost(.avahi, self.key(interface: Int32(number))))) }
        #expect(alice.core.peers.first?.addresses == ["10.0.0.0:9", "10.0.0.1:9", "10.0.0.2:9"])
        #expect(alice.core.records[self.bob]?.presence.isInGrace == false)
        alice.handle(.discovery(.lost(.avahi, self.key(interface: 0))))
        #expect(alice.core.discovered.sightings == 0 && alice.core.records[self.bob]?.presence.isInGrace == true)
    }

    /// The displaced sightings are bounded too, and are lost like others.
    @Test func displacedSightingsAreBoundedAndLostLikeOthers() throws {
        var alice = CoreBench()
        let count = EarshotLimits.sightingsPerPeer + EarshotLimits.displacedSightings
        for number in 0...count { alice.handle(try self.seen(self.bob, interface: Int32(number), at: ["10.0.0.1"])) }
        #expect(alice.core.discovered.sightings == count)
        #expect(alice.core.discovered.peer(at: SightingKey(backend: .avahi, key: self.key(interface: 0))) == nil)
        #expect(alice.core.discovered.peer(at: SightingKey(backend: .avahi, key: self.key(interface: 1))) == self.bob)
        // A displaced sighting is lost, and a present one, which the latest displaced sighting replaces.
        for number in [2, count] { alice.handle(.discovery(.lost(.avahi, self.key(interface: Int32(number))))) }
        let kept = try #require(alice.core.records[self.bob]?.presence)
        #expect(kept.sightings.count == EarshotLimits.sightingsPerPeer && kept.keys.count == count - 2)
        #expect(kept.sightings.keys.first?.key.interfaceIndex == Int32(count - EarshotLimits.sightingsPerPeer))
        alice.handle(.discovery(.reset(.avahi)))
        #expect(alice.core.discovered.sightings == 0 && alice.core.records[self.bob]?.presence.keys.isEmpty == true)
    }

    /// A sighting that useless advertisements had displaced is dialled as soon as it is back: no other event would start the dial.
    @Test func aSightingThatIsBackIsDialled() throws {
        var alice = CoreBench()
        alice.handle(try self.seen(self.bob, interface: 0, at: ["10.0.0.1"]))
        for number in 1...EarshotLimits.sightingsPerPeer { alice.handle(try self.seen(self.bob, interface: Int32(number), at: [])) }
        alice.call(.invite(self.bob.description, context: [], timeout: nil))
        #expect(alice.dials.isEmpty)
        alice.handle(.discovery(.lost(.avahi, self.key(interface: 1))))
        #expect(alice.dials == [self.bob])
    }

    /// DNS ignores the case of ASCII letters, and no other difference between spellings.
    @Test func instancesAreToldApartAsDNSDoes() {
        let keys = ["bob", "Bob", "jos\u{E9}", "jose\u{301}", "\u{C9}", "\u{E9}"].map {
            Sighting.Key(instanceName: $0, interfaceIndex: 1, overIPv6: false)
        }
        #expect(keys[0] == keys[1] && Set(keys.prefix(2)).count == 1)
        #expect(Set(keys).count == 5)
    }

    // MARK: Names

    private func error(_ alice: CoreBench, _ name: String) -> EarshotError? {
        do throws(EarshotError) {
            _ = try alice.core.resolve(name)
            return nil
        } catch {
            return error
        }
    }

    /// If no peer has the name, a limited number of ids that begin with it and are only advertised is listed.
    @Test func advertisedIDsNamed() throws {
        var alice = CoreBench()
        let start = "RASPBERRY"
        var ids: [String] = []
        for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ".prefix(EarshotLimits.advertisedIDsNamed + 1) {
            let text = start + String(repeating: letter, count: PeerID.textLength - start.count - 1) + "A"
            try alice.see(try #require(PeerID(text)), name: "mallory \(letter)")
            ids.append(text)
            let error = try #require(self.error(alice, start))
            #expect(error.code == .unknownPeer)
            #expect(ids.filter(error.message.contains) == Array(ids.prefix(EarshotLimits.advertisedIDsNamed)))
        }
        #expect(ids.count == EarshotLimits.advertisedIDsNamed + 1)
    }

    /// If a peer's id is in the settings or was trusted, an advertisement with that id is enough to use its beginning.
    @Test func idsOfSettingsAndDecisionsNeedNoProof() throws {
        var alice = CoreBench { $0.configuredPeers = [ConfiguredPeer(id: peerID(1), host: "127.0.0.1", port: 1)] }
        alice.call(.setTrust(.trusted, peerID(2).description, until: nil))
        for id in [peerID(1), peerID(2)] {
            #expect(try alice.core.resolve(String(id.description.prefix(PeerID.shortestPrefix))) == id)
        }
    }

    /// A member takes the name of an absent one. The name then means neither, and both are published again, also when the conflict ends.
    @Test func twoMembersOfOneNameAreAmbiguous() throws {
        var alice = CoreBench()
        let first = try alice.prove(self.bob, name: "bob")
        _ = try alice.join(on: first)
        alice.lose(first)
        let second = try alice.prove(peerID(8), name: "bob", from: [10, 77, 0, 8])
        #expect(try alice.core.resolve("bob") == self.bob, "never a stranger, though it is away")
        _ = try alice.join(on: second)
        let error = try #require(self.error(alice, "bob"))
        #expect(error.code == .ambiguousPeer && Set(error.candidates.map(\.id)) == [self.bob, peerID(8)])
        #expect(try alice.peer(self.bob).nameConflict == peerID(8) && alice.peer(peerID(8)).nameConflict == self.bob)
        // When one of the two is blocked, the name means the other one. Both are published again.
        alice.call(.setTrust(.blocked, peerID(8).description, until: nil))
        #expect(try alice.core.resolve("bob") == self.bob)
        #expect(try alice.peer(self.bob).nameConflict == nil)
        #expect(self.kinds(alice, of: self.bob).last == "changed")
        #expect(self.error(alice, alice.core.id.description)?.code == .invalidParameter, "this machine itself")
        #expect(self.error(alice, "")?.code == .invalidParameter)
    }

    // MARK: Configured peers

    private static let place = ConfiguredPeer(id: nil, host: "bob.test", port: 1)

    @Test func aConfiguredPeerIsDialledAgainAndAgain() throws {
        var alice = CoreBench { $0.configuredPeers = [Self.place] }
        func dials() -> Int { alice.effects.count { $0 == .dialConfigured(Self.place) } }
        #expect(dials() == 1)
        let delays = EarshotLimits.redialDelays
        for attempt in 1...delays.count {
            alice.handle(.configuredDial(Self.place, .ended(EarshotError(.unavailable, "try \(attempt)"))))
            let longest = delays[min(attempt, delays.count - 1)]
            let pause = longest - longest * Int(alice.core.id.bytes[attempt]) / 512
            alice.advance(pause - .nanoseconds(1))
            #expect(dials() == attempt, "not before \(pause)")
            alice.advance(.nanoseconds(1))
            #expect(dials() == attempt + 1)
        }
        // When the connection is established, the peer is checked periodically.
        let link = try alice.prove(self.bob, name: "bob", isInitiator: true)
        alice.handle(.configuredDial(Self.place, .answered(self.bob)))
        alice.handle(.configuredDial(Self.place, .ended(nil)))
        #expect(try alice.peer(self.bob).sources == [.configured])
        let count = dials()
        alice.advance(EarshotLimits.configuredCheck)
        #expect(dials() == count, "it is connected")
        // When the connection is lost, the peer is dialled again, at the latest after the pause of the side with the higher id.
        alice.lose(link)
        alice.advance(EarshotLimits.higherPeerDialDelay)
        #expect(dials() == count + 1)
    }

    @Test func aConfiguredPeerIsDialledAtTheNextCheck() throws {
        let place = ConfiguredPeer(id: self.bob, host: "bob.test", port: 1)
        var alice = CoreBench()
        alice.call(.setTrust(.blocked, self.bob.description, until: nil))
        var settings = CoreSettings()
        settings.configuredPeers = [place]
        alice.handle(.settings(settings))
        alice.call(.setTrust(.unknown, self.bob.description, until: nil))
        alice.advance(EarshotLimits.configuredCheck - .nanoseconds(1))
        #expect(!alice.effects.contains(.dialConfigured(place)))
        alice.advance(.nanoseconds(1))
        #expect(alice.effects.contains(.dialConfigured(place)))
        // When the settings drop the peer, nothing of it is left.
        alice.handle(.settings(CoreSettings()))
        #expect(alice.core.configuredDials.count == 0)
        #expect(try alice.peer(self.bob).addresses == [])
    }

    /// A comparison that waited for the end of a dial to that address must not wait for its report any more.
    @Test func aDialOfAPeerThatTheSettingsDropHoldsNothingBack() throws {
        var alice = CoreBench { $0.configuredPeers = [ConfiguredPeer(id: self.bob, host: "bob.test", port: 1)] }
        let link = try alice.prove(self.bob, name: "bob")
        alice.call(.verify("bob", timeout: nil))
        #expect(alice.sent(on: link) == [])
        alice.handle(.settings(CoreSettings()))
        #expect(alice.sent(on: link).contains { if case .verification = $0 { true } else { false } })
    }

    /// Neither of the two dials delays the other.
    @Test func aConfiguredPeerIsDialledWhereItIsSeenToo() throws {
        let place = ConfiguredPeer(id: self.bob, host: "bob.test", port: 1)
        var alice = CoreBench { $0.configuredPeers = [place] }
        try alice.see(self.bob)
        alice.call(.invite(self.bob.description, context: [], timeout: .seconds(3600)))
        let error = EarshotError(.unavailable, "no answer")
        func dials() -> (there: Int, seen: Int) { (alice.effects.count { $0 == .dialConfigured(place) }, alice.dials.count) }
        var (ended, minutes) = ((there: 0, seen: 0), [(there: Int, seen: Int)]())
        for _ in 1...3 {
            for _ in 1...600 {
                if dials().there > ended.there { alice.handle(.configuredDial(place, .ended(error))) }
                ended.there = dials().there
                if dials().seen > ended.seen { alice.handle(.dial(self.bob, .ended(error))) }
                ended.seen = dials().seen
                alice.advance(.milliseconds(100))
            }
            minutes.append(dials())
        }
        #expect(minutes[2].there - minutes[1].there >= 8 && minutes[2].seen - minutes[1].seen >= 8)
    }

    /// Another key answers at the configured address. The row becomes that key's, and requests to the former peer fail permanently.
    @Test func anotherKeyAnswersThere() throws {
        let place = ConfiguredPeer(id: self.bob, host: "bob.test", port: 1)
        var alice = CoreBench { $0.configuredPeers = [place] }
        let sent = try #require(alice.call(.invite(self.bob.description, context: [], timeout: nil))?.invitation)
        alice.handle(.configuredDial(place, .ended(EarshotError(.identityMismatch, "another key answered"))))
        #expect(try alice.invitation(sent.id).error == .identityMismatch)
        #expect(try alice.peer(self.bob).error?.code == .identityMismatch)
    }
}
