import EarshotTree
import EarshotWire
import Foundation
import NIOCore
import Testing

@testable import Earshot

/// Receiving directories: kept after interruptions, bounded by the quota, and published according to the settings.
@Suite(.timeLimit(.minutes(1))) struct NodeTreeTests {
    private let id = ResourceID.random()
    private let source: StateDirectory
    private let bytes: ByteBuffer

    init() throws {
        let source = try StateDirectory()
        let files = FileManager.default
        try files.createDirectory(atPath: "\(source.path)/tr/sub/empty", withIntermediateDirectories: true)
        try Data("one".utf8).write(to: URL(fileURLWithPath: "\(source.path)/tr/a"))
        try Data(repeating: 7, count: 100_000).write(to: URL(fileURLWithPath: "\(source.path)/tr/sub/b"))
        try files.createSymbolicLink(atPath: "\(source.path)/tr/link", withDestinationPath: "sub/b")
        self.source = source
        let tree = try TreeSource(path: "\(source.path)/tr")
        self.bytes = try tree.whole()
    }

    private func offer(_ session: SessionID, id: ResourceID? = nil) -> Frame {
        .resource(
            .offer(
                ResourceOffer(session: session, id: id ?? self.id, kind: .directory, size: UInt64(self.bytes.readableBytes), name: "tr")))
    }

    private func refusal(_ raw: RawPeer) async throws -> Refusal {
        guard case .resource(.refuse(let refuse)) = try await raw.resourceAnswer() else { throw EarshotError(.notFound, "not refused") }
        return refuse.refusal
    }

    private func chunk(_ range: Range<Int>, id: ResourceID? = nil) throws -> Frame {
        let data = try #require(self.bytes.getSlice(at: range.lowerBound, length: range.count))
        return .resource(.chunk(ResourceChunk(id: id ?? self.id, offset: UInt64(range.lowerBound), data: data)))
    }

    private func digest(_ count: Int) throws -> [UInt8] {
        let hash = try XXH3()
        hash.update(try #require(self.bytes.getSlice(at: 0, length: count)))
        return hash.digest()
    }

    private func rest(from offset: Int, id: ResourceID? = nil) throws -> [Frame] {
        [
            try self.chunk(offset..<self.bytes.readableBytes, id: id),
            .resource(.end(ResourceEnd(id: id ?? self.id, algorithm: .xxh3, digest: try self.digest(self.bytes.readableBytes)))),
        ]
    }

    private func accept(from offset: Int) -> Frame {
        .resource(.accept(ResourceAccept(id: self.id, offset: UInt64(offset), limit: UInt64(self.bytes.readableBytes))))
    }

    /// Sends the whole tree, on a connection on which it was not offered yet.
    private func deliver(_ raw: RawPeer, _ session: SessionID) async throws -> Frame {
        let id = ResourceID.random()
        try await raw.send(self.offer(session, id: id))
        let first = try await raw.resourceAnswer()
        guard case .resource(.accept) = first else { return first }
        for frame in try self.rest(from: 0, id: id) { try await raw.send(frame) }
        return try await raw.resourceAnswer()
    }

    private func expectEqual(_ directory: String) throws {
        let files = FileManager.default
        #expect(try String(contentsOfFile: "\(directory)/a", encoding: .utf8) == "one")
        #expect(files.contents(atPath: "\(directory)/sub/b") == Data(repeating: 7, count: 100_000))
        #expect(try files.destinationOfSymbolicLink(atPath: "\(directory)/link") == "sub/b")
        #expect(try files.contentsOfDirectory(atPath: "\(directory)/sub/empty") == [])
    }

    /// Within the entries, and within a file.
    @Test(arguments: [30, 50_000]) func itGoesOnAfterARestart(_ part: Int) async throws {
        let received = try StateDirectory()
        let (raw, bob, session) = try await RawPeer.joined { $0.receiveDirectory = received.path }
        try await raw.send(self.offer(session))
        #expect(try await raw.resourceAnswer() == self.accept(from: 0))
        try await raw.send(self.chunk(0..<part))
        try await eventually("a part is written") { try await bob.node.resource(self.id).transferred == UInt64(part) }
        await raw.close()
        try await eventually("it is paused") { try await bob.node.resource(self.id).state == .paused }
        await bob.stop()
        #expect(try received.names("") == [])
        let bob2 = try await TestNode("bob", in: bob.state) {
            $0.reserve = 0
            $0.receiveDirectory = received.path
        }
        let again = try await raw.attached(to: bob2, in: session)
        try await again.send(self.offer(session))
        guard case .resource(.have(let have)) = try await again.resourceAnswer() else { throw EarshotError(.notFound, "nothing was kept") }
        let held = Int(have.offset)
        #expect(held > 0 && held <= part)
        #expect(have.digest == (try self.digest(held)))
        try await again.send(.resource(.from(ResourceFrom(id: self.id, offset: have.offset))))
        #expect(try await again.resourceAnswer() == self.accept(from: held))
        for frame in try self.rest(from: held) { try await again.send(frame) }
        #expect(try await again.resourceAnswer() == .resource(.done(self.id)))
        try self.expectEqual("\(received.path)/tr")
        #expect(try bob2.spoolNames() == [])
        await again.close()
        await bob2.stop()
    }

    /// A directory takes the blocks of its files on the disk, and its entries, not only its bytes.
    @Test(arguments: [false, true]) func aDirectoryCountsWithItsBlocksOnDisk(_ hasRoom: Bool) async throws {
        let size = UInt64(self.bytes.readableBytes)
        let (raw, bob, session) = try await RawPeer.joined { $0.quota = hasRoom ? 4 * 200_000 : 4 * DiskBlocks(size: 4096).tree(size) - 1 }
        if hasRoom {
            guard case .resource(.done) = try await self.deliver(raw, session) else { throw EarshotError(.notFound, "not taken") }
        }
        // Before its first byte.
        if hasRoom { try await bob.reconfigure { $0.quota = 4 * DiskBlocks(size: 4096).tree(size) - 1 } }
        try await raw.send(self.offer(session))
        #expect(try await self.refusal(raw).code == .noSpace)
        #expect(try bob.spoolNames().count == (hasRoom ? 1 : 0))
        try await raw.roundTrip()
        await raw.close()
        await bob.stop()
    }

    /// Two directories at once. The peer's share has room for each of them beside the declared size of the other. The first one whose list
    /// of entries is complete gets it.
    @Test func twoAtOnce() async throws {
        let length = try self.bytes.withUnsafeReadableBytes { header in
            try TreeManifest.lengths(header: UnsafeRawBufferPointer(rebasing: header.prefix(TreeLimits.headerLength))).manifest
        }
        let room = try TreeManifest(decoding: Array(self.bytes.readableBytesView.prefix(length))).room(on: DiskBlocks(size: 4096))
        let declared = DiskBlocks(size: 4096).tree(UInt64(self.bytes.readableBytes))
        let (raw, bob, session) = try await RawPeer.joined { $0.quota = 4 * (room + declared) }
        let (first, second) = (ResourceID.random(), ResourceID.random())
        for id in [first, second] { try await raw.send(self.offer(session, id: id)) }
        #expect(try await raw.resourceAnswer().resource == first)
        try await raw.send(self.chunk(0..<length, id: first))
        // Only now is it the second one's turn.
        #expect(try await raw.resourceAnswer().resource == second)
        try await eventually("it is admitted") { await bob.node.spool.heldBytes() == room + declared }
        try await raw.send(self.chunk(0..<length, id: second))
        #expect(try await self.refusal(raw).code == .noSpace)
        for frame in try self.rest(from: length, id: first) { try await raw.send(frame) }
        #expect(try await raw.resourceAnswer() == .resource(.done(first)))
        #expect(await bob.node.spool.heldBytes() == room)
        // The session continues, and the declared size of the second one is available.
        try await raw.roundTrip()
        await raw.close()
        await bob.stop()
    }

    @Test(arguments: [NameConflictPolicy.rename, .overwrite, .skip])
    func aNameConflictFollowsThePolicy(_ policy: NameConflictPolicy) async throws {
        let received = try StateDirectory()
        let files = FileManager.default
        try files.createDirectory(atPath: "\(received.path)/tr", withIntermediateDirectories: true)
        try Data("old".utf8).write(to: URL(fileURLWithPath: "\(received.path)/tr/old"))
        let (raw, bob, session) = try await RawPeer.joined {
            $0.receiveDirectory = received.path
            $0.onNameConflict = policy
        }
        let end = try await self.deliver(raw, session)
        let old = "\(received.path)/tr/old"
        switch policy {
        case .rename:
            guard case .resource(.done) = end else { throw EarshotError(.notFound, "not taken") }
            try self.expectEqual("\(received.path)/tr (2)")
            #expect(try received.names("") == ["tr", "tr (2)"] && files.fileExists(atPath: old))
        case .overwrite:
            guard case .resource(.done) = end else { throw EarshotError(.notFound, "not taken") }
            try self.expectEqual("\(received.path)/tr")
            #expect(try received.names("") == ["tr"] && !files.fileExists(atPath: old), "replaced as a whole, not merged")
        case .skip:
            guard case .resource(.refuse(let refuse)) = end else { throw EarshotError(.notFound, "not refused") }
            #expect(refuse.refusal.code == .conflict)
            #expect(try received.names("") == ["tr"] && files.fileExists(atPath: old))
        }
        try await eventually("the spool is empty") { try bob.spoolNames() == [] }
        await raw.close()
        await bob.stop()
    }

    /// The digest is correct, but the content is not a tree.
    @Test func bytesThatAreNoTreeLeaveNothing() async throws {
        let received = try StateDirectory()
        let (raw, bob, session) = try await RawPeer.joined { $0.receiveDirectory = received.path }
        try await raw.send(self.offer(session))
        #expect(try await raw.resourceAnswer() == self.accept(from: 0))
        let junk = ByteBuffer(repeating: 0x41, count: self.bytes.readableBytes)
        try await raw.send(.resource(.chunk(ResourceChunk(id: self.id, offset: 0, data: junk))))
        #expect(try await self.refusal(raw).code == .protocolViolation)
        try await eventually("nothing is left") { try await bob.node.spool.heldBytes() == 0 && bob.spoolNames() == [] }
        #expect(try received.names("") == [])
        // The sender loses the transfer, but not the session.
        guard case .resource(.done) = try await self.deliver(raw, session) else { throw EarshotError(.notFound, "not taken") }
        await raw.close()
        await bob.stop()
    }

    /// A send to several recipients is atomic: at any time, either all rows exist or none.
    @Test(arguments: [false, true]) func toSeveralAtOnce(_ queue: Bool) async throws {
        let bob = try await TestNode("bob") { $0.fromUnknown = .accept }
        let peers = [try await RawPeer(to: bob), try await RawPeer(to: bob, name: "trudy")]
        for peer in peers {
            try await peer.prove()
            _ = try await peer.join()
        }
        // Walking it takes a while.
        let path = "\(self.source.path)/many"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        for number in 0..<1000 { try Data("x".utf8).write(to: URL(fileURLWithPath: "\(path)/\(number)")) }
        let isSending = Box(true)
        let names = peers.map(\.id.description)
        async let sent = {
            defer { isSending.withLock { $0 = false } }
            return try await bob.node.sendResource(to: names, path: path, queue: queue)
        }()
        while isSending.value {
            let count = await bob.node.resources().count
            #expect(count == 0 || count == 2)
            await Task.yield()
        }
        #expect(try await sent.map(\.peerID) == peers.map(\.id))
        for peer in peers { await peer.close() }
        await bob.stop()
    }
}
