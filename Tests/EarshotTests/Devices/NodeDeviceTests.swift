import Crypto
import EarshotCore
import EarshotWaiting
import EarshotWire
import Foundation
import NIOCore
import Synchronization
import Testing

@testable import Earshot

/// Files and texts from and to LocalSend devices, through the node, its spool and its store.
@Suite(.timeLimit(.minutes(1))) struct NodeDeviceTests {
    private static let phone = PeerID(deviceCertificate: [1])
    private static let sender = DeviceSender(id: phone, address: PeerAddress(host: "127.0.0.1", zone: nil, port: 40_000))
    private static let info = DeviceInfo(alias: "Pixel", version: "2.1", fingerprint: phone.fingerprint ?? "", port: 53317)

    private func node(
        _ devices: ScriptedDevices, in state: StateDirectory? = nil, configure: (inout Node.Configuration) -> Void = { _ in }
    ) async throws -> TestNode {
        try await TestNode("bob", in: state, devices: devices) {
            $0.localSend.isEnabled = true
            $0.fromUnknown = .accept
            configure(&$0)
        }
    }

    private func file(_ id: String, _ name: String, _ content: String, sha256: [UInt8]? = nil) -> DeviceFile {
        DeviceFile(
            id: id, name: name, size: UInt64(content.utf8.count), contentType: "image/jpeg", sha256: sha256,
            modified: WallTime(milliseconds: 1_000_000_000_500))
    }

    /// Offers files. Returns the uploads that are wanted, in their order.
    private func offer(_ files: [DeviceFile], to devices: ScriptedDevices) async throws -> [DeviceUpload] {
        let answer = try await devices.node.deviceOffered(DeviceOffer(info: Self.info, files: files), by: Self.sender)
        guard case .upload(let session, let tokens) = answer else { return [] }
        return tokens.map { DeviceUpload(session: session, file: $0.file, token: $0.token) }
    }

    private func upload(_ upload: DeviceUpload, _ pieces: [String], isCut: Bool = false, to devices: ScriptedDevices) async throws {
        try await devices.node.deviceUploads(upload, by: Self.sender, body: PiecesOfBody(pieces, isCut: isCut))
    }

    // MARK: Receiving

    @Test func filesArriveInTheirFoldersBelowTheDirectory() async throws {
        let received = try StateDirectory()
        let devices = ScriptedDevices()
        let bob = try await self.node(devices) { $0.receiveDirectory = received.path }
        #expect(await bob.node.status().localSend?.port == 53317)
        let uploads = try await self.offer([self.file("a", "trip/rome/1.jpg", "hello"), self.file("b", "2.jpg", "")], to: devices)
        try await self.upload(uploads[0], ["he", "llo"], to: devices)
        try await self.upload(uploads[1], [], to: devices)
        #expect(try String(contentsOfFile: "\(received.path)/trip/rome/1.jpg", encoding: .utf8) == "hello")
        #expect(try String(contentsOfFile: "\(received.path)/2.jpg", encoding: .utf8) == "")
        let times = try FileManager.default.attributesOfItem(atPath: "\(received.path)/trip/rome/1.jpg")
        #expect((times[.modificationDate] as? Date)?.timeIntervalSince1970 == 1_000_000_000.5)
        let rows = await bob.node.resources()
        #expect(rows.map(\.state) == [.completed, .completed] && rows.map(\.folder) == ["trip/rome", nil])
        #expect(rows[0].path == "\(received.path)/trip/rome/1.jpg" && rows[0].peerID == Self.phone && rows[0].peerName == "Pixel")
        // A second file of that name gets a number.
        let again = try await self.offer([self.file("a", "trip/rome/1.jpg", "again")], to: devices)
        try await self.upload(again[0], ["again"], to: devices)
        #expect(try String(contentsOfFile: "\(received.path)/trip/rome/1 (2).jpg", encoding: .utf8) == "again")
        await bob.stop()
    }

    @Test func aFileStaysInTheSpoolWithItsFolderUntilItIsFetched() async throws {
        let state = try StateDirectory()
        let devices = ScriptedDevices()
        let bob = try await self.node(devices, in: state)
        let uploads = try await self.offer([self.file("a", "trip/1.jpg", "hello")], to: devices)
        try await self.upload(uploads[0], ["hello"], to: devices)
        try await bob.node.setTrust(.trusted, for: Self.phone)
        await bob.stop()
        let again = try await self.node(ScriptedDevices(), in: state)
        let row = try #require(await again.node.resources().first)
        #expect(row.folder == "trip" && row.inSpool && row.peerID == Self.phone)
        #expect(try await again.node.peer(Self.phone).trust == .trusted)
        let place = try StateDirectory()
        #expect(try await again.node.publishContent(row.id, into: place.path) == "\(place.path)/trip/1.jpg")
        await again.stop()
    }

    @Test func aCutUploadFailsAndItsContentIsRemoved() async throws {
        let devices = ScriptedDevices()
        let bob = try await self.node(devices)
        let uploads = try await self.offer([self.file("a", "1.jpg", "hello")], to: devices)
        await #expect(throws: DeviceRefusal.failed) { try await self.upload(uploads[0], ["he"], isCut: true, to: devices) }
        #expect(await bob.node.resources().map(\.state) == [.failed])
        // Short without an error.
        let short = try await self.offer([self.file("a", "1.jpg", "hello")], to: devices)
        await #expect(throws: DeviceRefusal.failed) { try await self.upload(short[0], ["he"], to: devices) }
        await bob.stop()
        #expect(await bob.node.spool.heldBytes() == 0)
    }

    @Test func aByteMoreThanDeclaredEndsTheUpload() async throws {
        let devices = ScriptedDevices()
        let bob = try await self.node(devices)
        let uploads = try await self.offer([self.file("a", "1.jpg", "hello")], to: devices)
        await #expect(throws: DeviceRefusal.tooLarge) { try await self.upload(uploads[0], ["hello", "!"], to: devices) }
        #expect(await bob.node.resources().first?.error == .tooLarge)
        await bob.stop()
    }

    @Test func anOfferedDigestIsCheckedAndTheFileMayBeSentAgain() async throws {
        let devices = ScriptedDevices()
        let bob = try await self.node(devices)
        let digest = Array(SHA256.hash(data: Data("hello".utf8)))
        let uploads = try await self.offer([self.file("a", "1.jpg", "hello", sha256: digest)], to: devices)
        await #expect(throws: DeviceRefusal.digestMismatch) { try await self.upload(uploads[0], ["hullo"], to: devices) }
        try await self.upload(uploads[0], ["hello"], to: devices)
        #expect(await bob.node.resources().map(\.state) == [.failed, .completed])
        await bob.stop()
    }

    @Test func anOfferBeyondTheQuotaIsRefusedBeforeItsFirstByte() async throws {
        let devices = ScriptedDevices()
        let bob = try await self.node(devices) { $0.quota = 1 << 20 }
        let big = DeviceFile(id: "a", name: "big", size: 1 << 19, contentType: "image/jpeg")
        await #expect(throws: DeviceRefusal.noSpace) { try await self.offer([big], to: devices) }
        // A trusted device has three quarters.
        try await bob.node.setTrust(.trusted, for: Self.phone)
        #expect(try await self.offer([big], to: devices).count == 1)
        await bob.stop()
    }

    @Test func aTextIsInTheInboxWhenItIsAnswered() async throws {
        let devices = ScriptedDevices()
        let bob = try await self.node(devices)
        let text = DeviceFile(id: "a", name: "x.txt", size: 5, contentType: "text/plain", preview: "hello")
        #expect(try await self.offer([text], to: devices).isEmpty)
        let message = try #require(try await bob.node.messages(from: Self.phone).first)
        #expect(String(buffer: message.body) == "hello" && message.senderID == Self.phone && message.senderName == "Pixel")
        try await bob.node.markRead(message.id, from: Self.phone)
        await bob.stop()
    }

    @Test func aUserAcceptsAndASenderThatHangsUpWithdraws() async throws {
        let devices = ScriptedDevices()
        let bob = try await self.node(devices) { $0.fromUnknown = .ask }
        let first = Task { try await self.offer([self.file("a", "1.jpg", "hello")], to: devices) }
        let invitation = try await bob.invitation()
        #expect(invitation.offer?.first?.name == "1.jpg")
        first.cancel()
        #expect(try await bob.node.outcome(of: invitation.id).state == .cancelled)
        let second = Task { try await self.offer([self.file("a", "1.jpg", "hello")], to: devices) }
        let next: Invitation = try await bob.event {
            if case .invitationReceived(let other) = $0, other.id != invitation.id { other } else { nil }
        }
        #expect(try await bob.node.respond(to: next.id, .accept, always: true).state == .accepted)
        #expect(try await second.value.count == 1)
        #expect(try await bob.node.peer(Self.phone).trust == .trusted)
        await bob.stop()
    }

    // MARK: Sending

    /// Lists the phone, and trusts it.
    private func meet(_ bob: TestNode, _ devices: ScriptedDevices) async throws {
        try devices.node.deviceRegistered(Self.info, by: Self.sender)
        try await bob.event { if case .peerFound(let peer) = $0, peer.id == Self.phone { () } else { nil } }
        try await bob.node.setTrust(.trusted, for: Self.phone)
    }

    @Test func aTextIsDeliveredWithItsPIN() async throws {
        let devices = ScriptedDevices { _ in .nothingToSend }
        let bob = try await self.node(devices)
        try await self.meet(bob, devices)
        let sent = try await bob.node.send(
            to: .peers(["Pixel"]), contentType: "text/plain; charset=utf-8", body: ByteBuffer(string: "hello"), pin: "123456")
        #expect(sent.recipients.map(\.status) == [.delivered])
        #expect(devices.offers.first?.first?.preview == "hello" && devices.pins == ["123456"])
        await bob.stop()
    }

    @Test func aFileAndADirectoryAreUploaded() async throws {
        let devices = ScriptedDevices()
        let bob = try await self.node(devices)
        try await self.meet(bob, devices)
        let place = try StateDirectory()
        try FileManager.default.createDirectory(atPath: "\(place.path)/trip/rome", withIntermediateDirectories: true)
        try Data("one".utf8).write(to: URL(fileURLWithPath: "\(place.path)/trip/1.jpg"))
        try Data("two".utf8).write(to: URL(fileURLWithPath: "\(place.path)/trip/rome/2.jpg"))
        for path in ["trip/1.jpg", "trip"] {
            let row = try #require(try await bob.node.sendResource(to: [Self.phone], path: "\(place.path)/\(path)").first)
            let end: Resource = try await bob.event {
                if case .resourceFinished(let end) = $0, end.id == row.id { end } else { nil }
            }
            #expect(end.state == .completed && end.transferred == end.size, "\(end.errorMessage ?? "")")
        }
        let names = devices.received.map { "\($0.name)=\(String(decoding: $0.bytes, as: UTF8.self))" }
        #expect(names == ["1.jpg=one", "trip/1.jpg=one", "trip/rome/2.jpg=two"])
        await bob.stop()
    }

    @Test func anUploadKeepsToItsLimit() async throws {
        let gate = OneShot<Void>()
        let devices = ScriptedDevices(gate: gate)
        let bob = try await self.node(devices)
        try await self.meet(bob, devices)
        let place = try StateDirectory()
        let content = Data(repeating: 7, count: 300_000)
        try content.write(to: URL(fileURLWithPath: "\(place.path)/a.bin"))
        let limit: UInt64 = 500_000
        let row = try #require(try await bob.node.sendResource(to: [Self.phone], path: "\(place.path)/a.bin", limit: limit).first)
        try await bob.event { if case .resourceProgress(let row) = $0, row.state == .transferring { () } else { nil } }
        gate.settle(())
        let end: Resource = try await bob.event { if case .resourceFinished(let end) = $0, end.id == row.id { end } else { nil } }
        #expect(end.state == .completed && devices.received.map(\.bytes) == [Array(content)])
        // A tenth of a second is the most that may have collected.
        #expect(devices.pieces.max() ?? 0 <= Int(limit) / 10, "\(devices.pieces)")
        await bob.stop()
    }

    /// The tree's list of entries is read once, although the device is busy at first. It does not want one of the files.
    @Test func aDirectoryIsUploadedWhileItIsStreamedIn() async throws {
        let attempts = Mutex(0)
        let devices = ScriptedDevices { files throws(DeviceFailure) in
            let isFirst = attempts.withLock { attempts in
                attempts += 1
                return attempts == 1
            }
            if isFirst { throw .refused(status: DeviceRefusal.busy.rawValue) }
            return .upload(session: "s", tokens: .all(files.filter { !$0.name.hasSuffix("unwanted") }))
        }
        let bob = try await self.node(devices)
        try await self.meet(bob, devices)
        let place = try StateDirectory()
        try FileManager.default.createDirectory(atPath: "\(place.path)/trip/rome", withIntermediateDirectories: true)
        for name in ["1.jpg", "rome/2.jpg", "rome/unwanted", "rome/z.jpg"] {
            try Data("the file \(name)".utf8).write(to: URL(fileURLWithPath: "\(place.path)/trip/\(name)"))
        }
        let tree = try TreeSource(path: "\(place.path)/trip").whole()
        let rows = try await bob.node.sendResource(
            to: [Self.phone], name: "trip", kind: .directory, size: UInt64(tree.readableBytes), body: PiecesOfBody(cutting: tree))
        #expect(rows.map(\.state) == [.completed])
        #expect(devices.offers.map(\.count) == [4, 4])
        let received = devices.received.map { "\($0.name)=\(String(decoding: $0.bytes, as: UTF8.self))" }
        #expect(received == ["1.jpg", "rome/2.jpg", "rome/z.jpg"].map { "trip/\($0)=the file \($0)" })
        await bob.stop()
    }

    @Test func aBodyThatIsNoTreeIsNotOffered() async throws {
        let devices = ScriptedDevices()
        let bob = try await self.node(devices)
        try await self.meet(bob, devices)
        let error = await #expect(throws: EarshotError.self) {
            try await bob.node.sendResource(
                to: [Self.phone], name: "trip", kind: .directory, size: 30, body: PiecesOfBody([String(repeating: "x", count: 30)]))
        }
        #expect(error?.code == .protocolViolation && devices.offers.isEmpty)
        await bob.stop()
    }

    @Test func aDeviceThatAsksForAPINIsForbidden() async throws {
        let devices = ScriptedDevices { _ throws(DeviceFailure) in throw .refused(status: 401) }
        let bob = try await self.node(devices)
        try await self.meet(bob, devices)
        let sent = try await bob.node.send(to: [Self.phone], contentType: "text/plain", body: ByteBuffer(string: "x"))
        #expect(sent.recipients.map(\.error) == [.forbidden])
        await bob.stop()
    }
}
