import EarshotSafety
import EarshotTree
import EarshotWire
import Foundation
import NIOCore
import NIOEmbedded
import OrderedCollections
import Testing

@testable import Earshot

extension Frame {
    /// The resource of the frame.
    var resource: ResourceID? {
        switch self {
        case .resource(.offer(let offer)): offer.id
        case .resource(.accept(let accept)): accept.id
        case .resource(.refuse(let refuse)), .resource(.cancel(let refuse)): refuse.id
        case .resource(.done(let id)): id
        default: nil
        }
    }
}

/// The limits of one peer's unfinished transfers, on the other side's disk and in its memory.
@Suite(.timeLimit(.minutes(1))) struct NodeShareTests {
    private static let quota: UInt64 = 16 << 20

    private func node(configure: (inout Node.Configuration) -> Void = { _ in }) async throws -> TestNode {
        try await TestNode("bob") {
            $0.fromUnknown = .accept
            $0.quota = Self.quota
            $0.reserve = 0
            configure(&$0)
        }
    }

    private func member(of bob: TestNode, _ name: String = "mallory") async throws -> (RawPeer, SessionID) {
        let raw = try await RawPeer(to: bob, name: name)
        try await raw.prove()
        return (raw, try await raw.join())
    }

    private func isAccepted(_ raw: RawPeer, _ session: SessionID, size: UInt64, id: ResourceID = .random()) async throws -> Bool {
        try await raw.send(raw.offer("x", size: size, in: session, id: id))
        switch try await raw.resourceAnswer() {
        case .resource(.accept): return true
        case .resource(.refuse(let refuse)):
            #expect(refuse.refusal.code == .noSpace)
            #expect(refuse.refusal.explanation.contains("of one peer may hold"), "\(refuse.refusal.explanation)")
            return false
        default: throw EarshotError(.notFound, "neither taken nor refused")
        }
    }

    @Test func aPeerGetsAQuarterAndATrustedOneThree() async throws {
        let bob = try await self.node()
        let (raw, session) = try await self.member(of: bob)
        let quarter = Self.quota / 4
        #expect(try await self.isAccepted(raw, session, size: Self.quota) == false)
        #expect(try await self.isAccepted(raw, session, size: quarter - 4095) == false)
        #expect(try await self.isAccepted(raw, session, size: quarter - 8192))
        #expect(try await self.isAccepted(raw, session, size: 1) == false)
        _ = try await bob.node.setTrust(.trusted, for: raw.id.description)
        #expect(try await self.isAccepted(raw, session, size: 2 * quarter + 1) == false)
        #expect(try await self.isAccepted(raw, session, size: 2 * quarter))
        // A quarter is left for the other peers.
        let (other, theirs) = try await self.member(of: bob, "carol")
        #expect(try await self.isAccepted(other, theirs, size: quarter - 4096))
        await raw.close()
        await other.close()
        await bob.stop()
    }

    /// After an offer, the peer disconnects. Its space is available to other peers immediately, not after a day.
    @Test func offeredAndGone() async throws {
        let bob = try await self.node()
        let (raw, session) = try await self.member(of: bob)
        _ = try await bob.node.setTrust(.trusted, for: raw.id.description)
        let (id, size) = (ResourceID.random(), Self.quota / 4 * 3 - 4096)
        #expect(try await self.isAccepted(raw, session, size: size, id: id))
        await raw.close()
        try await eventually("it is paused and holds next to nothing") {
            let held = await bob.node.spool.heldBytes()
            return try await bob.node.resource(id).state == .paused && held <= 8192
        }
        for name in ["carol", "dave", "erin"] {
            let (other, theirs) = try await self.member(of: bob, name)
            #expect(try await self.isAccepted(other, theirs, size: Self.quota / 4 - 8192))
        }
        // After reconnecting, the sender is told that there is no room for the remainder.
        let again = try await raw.attached(to: bob, in: session)
        try await again.send(raw.offer("x", size: size, in: session, id: id))
        guard case .resource(.refuse(let refuse)) = try await again.resourceAnswer() else { throw EarshotError(.notFound, "not refused") }
        #expect(refuse.refusal.code == .noSpace)
        await again.close()
        await bob.stop()
    }

    // MARK: Lists of entries

    /// Returns a directory of empty files, whose list has at least this length.
    private static func tree(_ bytes: Int) throws -> [UInt8] {
        var builder = TreeManifest.Builder()
        let time = TreeEntry.Time(seconds: 0, nanoseconds: 0)
        try builder.append(TreeEntry(parent: 0, name: [], mode: 0o700, modified: time, content: .directory), path: "")
        let name = String(repeating: "x", count: 240)
        let file = TreeEntry.Content.file(size: 1)
        // With 274 bytes each.
        for number in 0..<max(1, (bytes + 273 - TreeLimits.headerLength - 20) / 274) {
            let name = Array((name + String(10_000_000 + number).suffix(6)).utf8)
            try builder.append(TreeEntry(parent: 0, name: name, mode: 0o600, modified: time, content: file), path: "x")
        }
        return try builder.finish().bytes
    }

    private func offer(_ list: [UInt8], in session: SessionID, _ id: ResourceID) throws -> Frame {
        let size = try list.withUnsafeBytes { header in
            try TreeManifest.lengths(header: UnsafeRawBufferPointer(rebasing: header.prefix(TreeLimits.headerLength))).stream
        }
        return .resource(.offer(ResourceOffer(session: session, id: id, kind: .directory, size: size, name: "tr")))
    }

    private func send(_ list: [UInt8], _ raw: RawPeer, _ id: ResourceID, from start: Int = 0) async throws {
        var offset = start
        while offset < list.count {
            let data = ByteBuffer(bytes: list[offset..<min(list.count, offset + WireLimits.chunkData)])
            try await raw.send(.resource(.chunk(ResourceChunk(id: id, offset: UInt64(offset), data: data))))
            offset += data.readableBytes
        }
    }

    /// The node receives the list of one offer out of eight at a time. The other offers wait without an answer: they are neither lost nor
    /// refused.
    @Test func oneListAtATime() async throws {
        let bob = try await self.node()
        let (raw, session) = try await self.member(of: bob)
        let list = try Self.tree(300)
        let ids = (0..<EarshotLimits.incomingTransfers).map { _ in ResourceID.random() }
        for id in ids { try await raw.send(try self.offer(list, in: session, id)) }
        for (number, id) in ids.enumerated() {
            guard case .resource(.accept(let accept)) = try await raw.resourceAnswer() else { throw EarshotError(.notFound, "not taken") }
            #expect(accept.id == id)
            // One byte before the end of the list, no other peer has a turn.
            try await raw.send(.resource(.chunk(ResourceChunk(id: id, offset: 0, data: ByteBuffer(bytes: list.dropLast())))))
            try await eventually("it is written") { try await bob.node.resource(id).transferred == UInt64(list.count - 1) }
            for later in ids[(number + 1)...] { #expect(try await bob.node.resource(later).state == .offered) }
            try await self.send(list, raw, id, from: list.count - 1)
        }
        // The last list has no successor whose answer tells that it is complete.
        try await eventually("the last list is there") { try await bob.node.resource(ids[ids.count - 1]).transferred == UInt64(list.count) }
        await raw.close()
        try await eventually("all are interrupted") {
            let rows = await bob.node.resources()
            return rows.count == ids.count && rows.allSatisfy { $0.state == .paused }
        }
        // After reconnecting, each offer has its turn again.
        let again = try await raw.attached(to: bob, in: session)
        for id in ids { try await again.send(try self.offer(list, in: session, id)) }
        var back: Set<ResourceID> = []
        for _ in ids {
            guard case .resource(.have(let have)) = try await again.resourceAnswer() else {
                throw EarshotError(.notFound, "nothing was kept")
            }
            #expect(have.offset == UInt64(list.count))
            back.insert(have.id)
        }
        #expect(back == Set(ids))
        await again.close()
        await bob.stop()
    }

    /// A long list stays in memory until its directory is complete or interrupted, and the next one waits for that.
    @Test(arguments: [EarshotLimits.shortTreeList, EarshotLimits.shortTreeList + 1]) func shortTreeList(_ bytes: Int) async throws {
        let bob = try await self.node { $0.quota = 1 << 30 }
        let (raw, session) = try await self.member(of: bob)
        let list = try Self.padded(try Self.tree(bytes - 600), to: bytes)
        let isLong = bytes > EarshotLimits.shortTreeList
        let (first, second) = (ResourceID.random(), ResourceID.random())
        try await raw.send(try self.offer(list, in: session, first))
        #expect(try await raw.resourceAnswer().resource == first)
        try await raw.send(try self.offer(list, in: session, second))
        try await self.send(list, raw, first)
        try await eventually("the list is there") { try await bob.node.resource(first).transferred == UInt64(list.count) }
        if isLong {
            try await raw.roundTrip()
            #expect(try await bob.node.resource(second).state == .offered)
            try await raw.send(.resource(.cancel(ResourceRefuse(id: first, refusal: Refusal(code: .cancelled)))))
        }
        #expect(try await raw.resourceAnswer().resource == second)
        await raw.close()
        await bob.stop()
    }

    /// Returns the list with a few more entries, so that it has exactly this size.
    private static func padded(_ list: [UInt8], to bytes: Int) throws -> [UInt8] {
        var missing = bytes - list.count
        let old = try TreeManifest(decoding: list)
        var builder = TreeManifest.Builder()
        for index in 0..<old.count { try builder.append(old[index], path: "") }
        let time = TreeEntry.Time(seconds: 0, nanoseconds: 0)
        var number = 0
        while missing > 0 {
            // A link with 22 bytes, its name and its target.
            let length = missing > 300 ? 200 : missing
            let name = Array("y\(number)".utf8)
            let target = [UInt8](repeating: 0x7A, count: length - 22 - name.count)
            try builder.append(TreeEntry(parent: 0, name: name, mode: 0o777, modified: time, content: .link(target: target)), path: "y")
            missing -= length
            number += 1
        }
        let padded = try builder.finish().bytes
        try #require(padded.count == bytes)
        return padded
    }

    /// Outgoing directories wait for the answer as long as another one is being transferred, and no longer.
    @Test func aDirectoryWaitsBehindAnother() async throws {
        let loop = NIOAsyncTestingEventLoop()
        let bob = try await self.node { $0.timers = Timers(on: loop) }
        let (raw, _) = try await self.member(of: bob)
        for name in ["one", "two"] {
            try FileManager.default.createDirectory(atPath: "\(bob.directory)/\(name)", withIntermediateDirectories: true)
            try Data(repeating: 1, count: 1000).write(to: URL(fileURLWithPath: "\(bob.directory)/\(name)/file"))
            _ = try await bob.node.sendResource(to: [raw.id.description], path: "\(bob.directory)/\(name)")
        }
        var ids: [ResourceID] = []
        for _ in 0..<2 { ids.append(try await raw.next { if case .resource(.offer(let offer)) = $0 { offer.id } else { nil } }) }
        try await raw.send(.resource(.accept(ResourceAccept(id: ids[0], offset: 0, limit: 1))))
        try await eventually("the first moves") { try await bob.node.resource(ids[0]).transferred == 1 }
        let step = EarshotLimits.resourceStallTime
        var limit: UInt64 = 1
        var time: Duration = .zero
        while time < EarshotLimits.resourceAnswerTime + step {
            await loop.advanceTime(by: TimeAmount(step))
            time += step
            limit += 1
            try await raw.send(.resource(.accept(ResourceAccept(id: ids[0], offset: 0, limit: limit))))
            try await eventually("it moves") { try await bob.node.resource(ids[0]).transferred == limit }
        }
        #expect(try await bob.node.resource(ids[1]).state == .offered)
        // The first one ends, and the second waits for its answer for the full time again.
        try await raw.send(.resource(.refuse(ResourceRefuse(id: ids[0], refusal: Refusal(code: .declined)))))
        try await eventually("the first is over") { try await bob.node.resource(ids[0]).state.isFinal }
        // The full time starts when the first has been removed, for which there is no event.
        try await eventually("the second is, too") {
            await loop.advanceTime(by: TimeAmount(EarshotLimits.resourceAnswerTime))
            return try await bob.node.resource(ids[1]).error == .timedOut
        }
        await raw.close()
        await bob.stop()
    }
}
