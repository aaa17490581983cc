import EarshotSafety
import EarshotWire
import Foundation
import NIOCore
import Testing

@testable import Earshot
@testable import EarshotCore

/// A single file keeps its executable bit, its time and its holes.
@Suite(.timeLimit(.minutes(1))) struct NodeFileAttributesTests {
    /// Data, a hole of 1 MiB, data, and a hole at the end.
    private static let size: UInt64 = 3 << 20
    private static let attributes = FileAttributes(isExecutable: true, hasHoles: true, seconds: 1_000_000_000, nanoseconds: 123_456_789)

    private static func content() -> [UInt8] {
        var content = [UInt8](repeating: 0, count: Int(Self.size))
        for place in [0, 1 << 20 + 65_536] { for index in place..<place + 65_536 { content[index] = UInt8(truncatingIfNeeded: index | 1) } }
        return content
    }

    private static func write(at path: String) throws {
        let directory = try SafeDirectory(path: URL(fileURLWithPath: path).deletingLastPathComponent().path)
        let name = try SafeName(URL(fileURLWithPath: path).lastPathComponent)
        let file = try directory.open(name, flags: OpenFile.readWrite | OpenFile.create)
        try file.write(Self.content(), at: 0, leavingHoles: true)
        file.apply(Self.attributes)
        try #require(try file.attributes() == Self.attributes)
    }

    private static func expect(_ path: String, mode: UInt32) throws {
        let file = try SafeDirectory(path: URL(fileURLWithPath: path).deletingLastPathComponent().path)
            .open(SafeName(URL(fileURLWithPath: path).lastPathComponent))
        #expect(try file.attributes() == Self.attributes)
        let status = try file.status()
        #expect(status.mode == mode && status.size == Self.size && status.allocated < Self.size / 2)
        #expect(try file.bytes(at: 0, count: Int(Self.size)) == Self.content())
    }

    private static func body() -> AsyncThrowingStream<ByteBuffer, any Error> {
        let content = Self.content()
        return AsyncThrowingStream { stream in
            // In pieces that end within a block.
            for start in stride(from: 0, to: content.count, by: 100_001) {
                stream.yield(ByteBuffer(bytes: content[start..<min(start + 100_001, content.count)]))
            }
            stream.finish()
        }
    }

    @Test func itIsPutInPlaceWithThem() async throws {
        let place = try StateDirectory()
        try #require(chmod(place.path, 0o755) == 0)
        let (alice, bob) = try await pair(configureBob: { $0.receiveDirectory = place.path })
        let path = alice.directory + "/run.sh"
        try Self.write(at: path)
        let name = bob.node.id.description
        let row = try #require(try await alice.node.sendResource(to: [name], path: path).first)
        try await eventually("it arrives") { try await alice.node.resource(row.id).state == .completed }
        try Self.expect(place.path + "/run.sh", mode: 0o755)
        let sent = try await alice.node.sendResource(
            to: [name], name: "body", kind: .file, size: Self.size, digest: .sha256, limit: nil, attributes: Self.attributes,
            body: Self.body())
        #expect(sent.first?.state == .completed)
        try Self.expect(place.path + "/body", mode: 0o755)
        let queued = try #require(
            try await alice.node.queueResource(
                to: [name], name: "queued", kind: .file, size: Self.size, digest: .xxh3, limit: nil, attributes: Self.attributes,
                body: Self.body()
            ).first)
        try await eventually("it arrives") { try await alice.node.resource(queued.id).state == .completed }
        try Self.expect(place.path + "/queued", mode: 0o755)
        // A body has no attributes.
        let before = Date().timeIntervalSince1970 - 2
        _ = try await alice.node.sendResource(to: [name], name: "plain", size: Self.size, body: Self.body())
        let plain = try #require(FileStatus(path: place.path + "/plain"))
        #expect(plain.mode == 0o644 && plain.allocated >= Self.size && plain.modified[0] >= Int(before))
        await alice.stop()
        await bob.stop()
    }

    @Test(.enabled(if: OtherDisk.isAvailable, "skipped: /dev/shm is no other file system")) func aCopyHasThemToo() async throws {
        let place = try OtherDisk.directory()
        try #require(chmod(place.path, 0o700) == 0)
        let (alice, bob) = try await pair(configureBob: { $0.receiveDirectory = place.path })
        let path = alice.directory + "/run.sh"
        try Self.write(at: path)
        let row = try #require(try await alice.node.sendResource(to: [bob.node.id.description], path: path).first)
        try await eventually("it arrives") { try await alice.node.resource(row.id).state == .completed }
        try Self.expect(place.path + "/run.sh", mode: 0o700)
        await alice.stop()
        await bob.stop()
    }

    @Test func itKeepsThemInTheSpool() async throws {
        let (alice, bob) = try await pair()
        let path = alice.directory + "/run.sh"
        try Self.write(at: path)
        let row = try #require(try await alice.node.sendResource(to: [bob.node.id.description], path: path).first)
        try await eventually("it arrives") { try await alice.node.resource(row.id).state == .completed }
        #expect(try await bob.node.resourceContent(row.id).attributes() == Self.attributes)
        let target = try StateDirectory()
        let published = try await bob.node.publishContent(row.id, into: target.path)
        #expect(try OpenFile.attributes(at: published) == Self.attributes)
        await alice.stop()
        await bob.stop()
    }

    /// An interrupted transfer continues after the last hole.
    @Test func interruptedInAHole() async throws {
        let state = try StateDirectory()
        let spool = try Spool(directory: state.path)
        let (id, content) = (ResourceID.random(), Self.content())
        let allowance = Spool.Allowance(quota: 1 << 30, reserve: 0)
        _ = try await spool.begin(id, size: Self.size, allowance, attributes: Self.attributes)
        let half = 500_001
        try await spool.write(id, offset: 0, ByteBuffer(bytes: content[..<half]))
        await spool.pause(id)
        let held = try #require(try await spool.resume(id, size: Self.size, allowance, attributes: Self.attributes))
        let hash = try XXH3()
        hash.update(ByteBuffer(bytes: content[..<half]))
        #expect(held == ResourceHeld(count: UInt64(half), digest: hash.digest()))
        try await spool.write(id, offset: UInt64(half), ByteBuffer(bytes: content[half...]))
        hash.update(ByteBuffer(bytes: content[half...]))
        _ = try await spool.finish(id, algorithm: .xxh3, digest: hash.digest())
        let file = try await spool.open(id)
        #expect(try file.attributes() == Self.attributes && file.status().allocated < Self.size / 2)
        #expect(try file.bytes(at: 0, count: content.count) == content)
    }

    /// A sender without support for attributes offers a file without them, and receives offers without them.
    @Test func aPeerThatDoesNotKnowThem() async throws {
        let bob = try await TestNode("bob") { $0.fromUnknown = .accept }
        let raw = try await RawPeer(to: bob)
        try await raw.prove()
        let session = try await raw.join()
        let path = bob.directory + "/run.sh"
        try Self.write(at: path)
        _ = try await bob.node.sendResource(to: [raw.identity.id.description], path: path)
        let offer = try await raw.next { if case .resource(.offer(let offer)) = $0 { offer } else { nil } }
        #expect(offer.attributes == nil && offer.session == session)
        await raw.close()
        await bob.stop()
    }
}

extension OpenFile {
    fileprivate static func attributes(at path: String) throws -> FileAttributes {
        try SafeDirectory(path: URL(fileURLWithPath: path).deletingLastPathComponent().path)
            .open(SafeName(URL(fileURLWithPath: path).lastPathComponent)).attributes()
    }
}
