import EarshotWire
import OrderedCollections
import Testing

@testable import EarshotCore

/// LocalSend devices as peers: how they are listed, named, trusted and lost.
@Suite struct DeviceListTests {
    private let phone = deviceID(1)

    // MARK: Listing

    @Test func aDeviceThatRegistersIsListedUnderItsCertificate() throws {
        var bob = CoreBench.forDevices()
        bob.register(1)
        let peer = try bob.peer(self.phone)
        #expect(peer.kind == .localsend && peer.fingerprint == self.phone.fingerprint && peer.sources == [.localsend] && peer.proven)
        #expect(peer.name == "Pixel" && peer.addresses == ["10.77.0.2:53317"] && peer.presence == .nearby && peer.trust == .unknown)
        #expect(bob.events.contains(.peerFound(peer)) && bob.core.peers == [peer] && bob.core.counts.peers == 1)
        bob.register(1, named: "Pixel 9")
        #expect(bob.events.contains(.peerChanged(try bob.peer(self.phone))))
        #expect(bob.peersOnDisk.isEmpty)
    }

    @Test func aBodyThatClaimsAnothersFingerprintListsNobody() {
        var bob = CoreBench.forDevices()
        bob.handle(.device(.registered(.of(deviceID(2)), .phone)))
        bob.handle(.device(.registered(.of(self.phone), .nobody)))
        let place = PeerAddress(host: "10.77.0.2", zone: nil, port: 53317)
        bob.handle(.device(.reached(place, .success(DeviceAnswer(id: self.phone, info: .of(deviceID(2)))))))
        #expect(bob.core.peers.isEmpty && bob.events.isEmpty)
        let offer = DeviceOffer(info: .of(deviceID(2), named: "Mallory"), files: [.photo()])
        bob.call(.device(.offer(offer, .phone, origin: [10, 77, 0, 2])))
        #expect(bob.core.peers.isEmpty && bob.core.invitations(all: false).map(\.peerName) == ["Mallory"])
    }

    @Test func aLowPortIsNoPlace() {
        var bob = CoreBench.forDevices()
        bob.handle(.device(.registered(.of(self.phone, port: 1023), .phone)))
        #expect(bob.core.peers.map(\.addresses) == [[]])
        bob.handle(.device(.registered(.of(self.phone, port: 1024), .phone)))
        #expect(bob.core.peers.map(\.addresses) == [["10.77.0.2:1024"]])
    }

    @Test func whileLocalSendIsOffNothingIsListedOrAnswered() {
        var bob = CoreBench()
        bob.register(1)
        bob.announce(.of(self.phone))
        #expect(bob.core.peers.isEmpty && bob.deviceEffects.isEmpty)
        #expect(bob.refusedOffer() == .failed)
    }

    // MARK: Announcements

    @Test func anAnnouncementIsAnsweredByRegistrationAndElseByADatagram() throws {
        var bob = CoreBench.forDevices()
        let place = PeerAddress(host: "10.77.0.2", zone: nil, port: 53317)
        bob.announce(.of(self.phone))
        #expect(bob.registers == [place] && bob.core.peers.isEmpty)
        bob.handle(.device(.reached(place, .success(DeviceAnswer(id: self.phone, info: .of(self.phone, port: nil))))))
        #expect(try bob.peer(self.phone).addresses == ["10.77.0.2:53317"])
        bob.advance(.seconds(10))
        bob.announce(.of(self.phone))
        bob.handle(.device(.reached(place, .failure(.unreachable("x")))))
        #expect(bob.deviceEffects.last == .answerByDatagram)
        // An answer is not answered.
        bob.advance(.seconds(10))
        bob.announce(.of(self.phone), isAnswer: true)
        let count = bob.deviceEffects.count
        bob.handle(.device(.reached(place, .failure(.unreachable("x")))))
        #expect(bob.deviceEffects.count == count)
    }

    @Test func registrationsAreOneInTenSecondsAnAddressAndThirtyAMinute() {
        var bob = CoreBench.forDevices()
        bob.announce(.of(self.phone))
        bob.announce(.of(self.phone, port: 2000))
        #expect(bob.registers.count == 1)
        bob.advance(.seconds(10) - .nanoseconds(1))
        bob.announce(.of(self.phone))
        #expect(bob.registers.count == 1)
        bob.advance(.nanoseconds(1))
        bob.announce(.of(self.phone))
        #expect(bob.registers.count == 2)
        for host in 0..<200 { bob.announce(.of(self.phone), from: "10.77.1.\(host)") }
        #expect(bob.registers.count == 30)
        bob.advance(.seconds(50))
        bob.announce(.of(self.phone), from: "10.77.2.1")
        #expect(bob.registers.count == 31)
        bob.announce(.of(self.phone), from: "10.77.2.2")
        #expect(bob.registers.count == 31)
    }

    @Test func lowPortsAndPlainHTTPAreNotDialled() {
        var bob = CoreBench.forDevices()
        bob.announce(.of(self.phone, port: 1023))
        bob.announce(.of(self.phone, port: nil))
        var plain = DeviceInfo.of(self.phone)
        plain.isEncrypted = false
        bob.announce(plain)
        #expect(bob.registers.isEmpty)
        bob.announce(.of(self.phone, port: 1024))
        #expect(bob.registers.count == 1)
    }

    @Test func tenThousandAnnouncementsMakeNoRow() {
        var bob = CoreBench.forDevices()
        for number in 0..<10_000 { bob.announce(.of(deviceID(UInt8(number % 256))), from: "10.77.\(number / 256 % 256).\(number % 256)") }
        #expect(bob.core.peers.isEmpty && bob.registers.count == 30 && bob.peersOnDisk.isEmpty)
    }

    @Test func thisMachineAnnouncesItselfThreeTimesAtTheStartAndWhenWanted() {
        var bob = CoreBench.forDevices()
        let announced = { (bench: CoreBench) in bench.deviceEffects.count { $0 == .announce } }
        #expect(announced(bob) == 0)
        bob.advance(.milliseconds(100))
        #expect(announced(bob) == 1)
        bob.advance(.milliseconds(500))
        #expect(announced(bob) == 2)
        bob.advance(.seconds(60))
        #expect(announced(bob) == 3)
        bob.handle(.device(.wanted))
        bob.advance(.seconds(5))
        #expect(announced(bob) == 6)
        bob.handle(.device(.wanted))
        bob.advance(.seconds(5))
        #expect(announced(bob) == 6)
        bob.handle(.device(.wanted))
        bob.handle(.device(.linksChanged))
        bob.advance(.seconds(3))
        #expect(announced(bob) == 9)
        bob.handle(.device(.linksChanged))
        bob.advance(.seconds(3))
        #expect(announced(bob) == 12)
    }

    // MARK: Silence

    @Test func aSilentDeviceIsAskedAndThenLost() throws {
        var bob = CoreBench.forDevices()
        bob.register(1)
        let place = PeerAddress(host: "10.77.0.2", zone: nil, port: 53317)
        bob.advance(.seconds(180) - .nanoseconds(1))
        #expect(bob.registers.isEmpty)
        bob.advance(.nanoseconds(1))
        #expect(bob.registers == [place])
        bob.handle(.device(.reached(place, .success(DeviceAnswer(id: self.phone, info: .of(self.phone))))))
        bob.advance(.seconds(180))
        bob.handle(.device(.reached(place, .failure(.unreachable("x")))))
        #expect(bob.core.peers.isEmpty && bob.events.contains { if case .peerLost(let peer) = $0 { peer.id == self.phone } else { false } })
    }

    @Test func aStoredDeviceStaysListedWhileItIsAway() throws {
        var bob = CoreBench.forDevices()
        bob.register(1)
        bob.call(.setTrust(.trusted, self.phone.description, until: nil))
        bob.advance(.seconds(180))
        bob.handle(.device(.reached(PeerAddress(host: "10.77.0.2", zone: nil, port: 53317), .failure(.unreachable("x")))))
        let peer = try bob.peer(self.phone)
        #expect(peer.presence == .away && peer.trust == .trusted && peer.sources == [.store])
        let again = bob.restarted { $0.devices.isOn = true }
        #expect(try again.peer(self.phone).trust == .trusted)
    }

    @Test func anotherDeviceAtThePlaceEndsTheFirst() throws {
        var bob = CoreBench.forDevices()
        bob.register(1)
        let place = PeerAddress(host: "10.77.0.2", zone: nil, port: 53317)
        bob.handle(.device(.reached(place, .success(DeviceAnswer(id: deviceID(2), info: .of(deviceID(2)))))))
        #expect(bob.core.peers.map(\.id) == [deviceID(2)])
    }

    @Test func of256SeenDevicesThoseThatWereNotReachedGiveWayFirst() throws {
        var bob = CoreBench.forDevices()
        for number in 0..<128 {
            bob.advance(.nanoseconds(1))
            bob.register(UInt8(number), at: "10.77.2.\(number)")
        }
        for number in 128...255 {
            let place = PeerAddress(host: "10.77.1.\(number)", zone: nil, port: 53317)
            let id = deviceID(UInt8(number))
            bob.handle(.device(.reached(place, .success(DeviceAnswer(id: id, info: .of(id))))))
        }
        #expect(bob.core.peers.count == 256)
        // The 257th: a certificate of two bytes.
        let extra = PeerID(deviceCertificate: [1, 1])
        bob.handle(.device(.registered(.of(extra), DeviceSender(id: extra, address: DeviceSender.phone.address))))
        #expect(bob.core.peers.count == 256)
        #expect(throws: EarshotError.self) { try bob.peer(deviceID(0)) }
        #expect(try bob.peer(extra).presence == .nearby)
        #expect(try bob.peer(deviceID(1)).presence == .nearby)
    }

    @Test func anAddressMakesFourDevicesKnownAndThenOneInTenSeconds() {
        var bob = CoreBench.forDevices()
        for number in 1...5 { bob.register(UInt8(number)) }
        #expect(bob.core.peers.count == 4)
        bob.advance(.seconds(10))
        bob.register(6)
        bob.register(7)
        #expect(bob.core.peers.count == 5)
        // Known devices and other addresses are not affected.
        bob.register(1, named: "other")
        bob.register(8, at: "10.77.0.3")
        #expect(bob.core.peers.count == 6 && bob.core.peers.contains { $0.name == "other" })
    }

    @Test func aDevicesNewNameIsWritten() throws {
        var bob = CoreBench.forDevices()
        bob.call(.setTrust(.trusted, self.phone.description, until: nil))
        #expect(bob.peersOnDisk[self.phone]?.isProven == false)
        bob.register(1)
        #expect(bob.peersOnDisk[self.phone]?.name == "Pixel" && bob.peersOnDisk[self.phone]?.isProven == true)
    }

    @Test func anAdvertisementNamesNoDevice() throws {
        var bob = CoreBench.forDevices()
        try bob.see(self.phone)
        #expect(bob.core.peers.isEmpty)
    }

    // MARK: Names

    @Test func aNameMeansAnEarshotPeerFirst() throws {
        var bob = CoreBench.forDevices()
        bob.register(1, named: "alice")
        #expect(try bob.core.resolve("alice") == self.phone)
        try bob.see(peerID(1), name: "alice")
        #expect(try bob.core.resolve("alice") == peerID(1))
    }

    @Test func twoDevicesOfOneNameAreAmbiguous() throws {
        var bob = CoreBench.forDevices()
        bob.register(1)
        bob.register(2, at: "10.77.0.3")
        bob.call(.setTrust(.trusted, self.phone.description, until: nil))
        let error = #expect(throws: EarshotError.self) { try bob.core.resolve("Pixel") }
        #expect(error?.code == .ambiguousPeer && error?.candidates.count == 2)
        bob.call(.setTrust(.blocked, deviceID(2).description, until: nil))
        #expect(try bob.core.resolve("Pixel") == self.phone)
    }

    @Test func anIdPrefixNeedsEightCharactersAfterItsMark() throws {
        var bob = CoreBench.forDevices()
        bob.register(1)
        let text = self.phone.description
        #expect(try bob.core.resolve(String(text.prefix(11))) == self.phone)
        #expect(try bob.core.resolve(text.prefix(11).lowercased()) == self.phone)
        #expect(throws: EarshotError.self) { try bob.core.resolve(String(text.prefix(10))) }
        // A whole id resolves even if the device was never seen.
        #expect(try bob.core.resolve(deviceID(7).description) == deviceID(7))
    }

    @Test func anAliasGoesBeforeTheNameAndBelongsToOnePeer() throws {
        var bob = CoreBench.forDevices()
        bob.register(1)
        let mine = try DisplayName("my phone")
        #expect(bob.call(.setAlias(mine, "Pixel"))?.peer?.name == "my phone")
        #expect(try bob.core.resolve("my phone") == self.phone)
        #expect(try bob.peer(self.phone).displayName == "Pixel" && bob.peersOnDisk[self.phone]?.alias == mine)
        try bob.prove(peerID(1), name: "alice")
        bob.call(.setTrust(.trusted, peerID(1).description, until: nil))
        #expect(bob.call(.setAlias(mine, peerID(1).description))?.error == .conflict)
        #expect(bob.call(.setAlias(try DisplayName("Alice"), self.phone.description))?.error == .conflict)
        #expect(bob.call(.setAlias(nil, self.phone.description))?.peer?.name == "Pixel")
    }

    // MARK: Trust

    @Test func trustInADeviceExpires() throws {
        var bob = CoreBench.forDevices()
        bob.register(1)
        let end = bob.now.wall + .seconds(60)
        #expect(bob.call(.setTrust(.trusted, "Pixel", until: end))?.peer?.trustEnd == end)
        bob.advance(.seconds(61))
        #expect(try bob.peer(self.phone).trust == .unknown && bob.peersOnDisk[self.phone]?.trust == .unknown)
    }

    @Test func aBlockedDeviceCausesNoEvents() throws {
        var bob = CoreBench.forDevices()
        bob.call(.setTrust(.blocked, self.phone.description, until: nil))
        let count = bob.events.count
        bob.register(1)
        bob.register(1, named: "other")
        #expect(bob.events.count == count)
    }

    @Test func sessionsStreamsGroupsAndComparisonsAreUnsupported() throws {
        var bob = CoreBench.forDevices()
        bob.register(1)
        let name = self.phone.description
        #expect(bob.call(.invite(name, context: [], timeout: nil))?.error == .unsupported)
        #expect(bob.call(.verify(name, timeout: nil))?.error == .unsupported)
        #expect(bob.call(.endVerification(name, mismatch: true))?.error == .unsupported)
    }

    @Test func theRulesForADeviceAreExplained() throws {
        var bob = CoreBench.forDevices()
        bob.register(1)
        let decisions = try bob.core.explainPolicy("Pixel").decisions
        #expect(decisions.first { $0.action == .invite }?.outcome == .ask && decisions.first { $0.action == .file }?.outcome == .ask)
        bob.call(.setTrust(.trusted, "Pixel", until: nil))
        #expect(try bob.core.explainPolicy("Pixel").decisions.first { $0.action == .file }?.outcome == .allow)
    }
}
