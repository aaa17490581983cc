import EarshotSafety
import EarshotWire
import Foundation
import Glibc
import NIOCore
import Testing

@testable import Earshot

/// A file that a caller holds open is sent, and read again after an interruption. The test controls the receiver's frames.
@Suite(.timeLimit(.minutes(1))) struct NodeHeldFileTests {
    private struct Sending {
        let raw: RawPeer
        let alice: TestNode
        let session: SessionID
        let id: ResourceID
        let call: Task<[Resource], any Error>

        func end() async {
            await self.raw.close()
            await self.alice.stop()
        }
    }

    /// Offers a file of 10 bytes, whose name is gone, to a peer that accepts `limit` of them. They have arrived when this returns.
    private func sending(accepted limit: UInt64 = 4) async throws -> Sending {
        let alice = try await TestNode("alice") { $0.fromUnknown = .accept }
        let raw = try await RawPeer(to: alice)
        try await raw.prove()
        let session = try await raw.join()
        let path = alice.directory + "/source"
        try Data("0123456789".utf8).write(to: URL(fileURLWithPath: path))
        let file = OpenFile(descriptor: open(path, O_RDWR | O_CLOEXEC), subject: "source")
        try #require(unlink(path) == 0)
        let id = ResourceID.random()
        let call = Task {
            try await alice.node.sendResource(
                to: [raw.id.description], file: HeldFile(file, name: "source"), as: id, digest: .xxh3, limit: nil
            ) { row in #expect(row.id == id && row.size == 10) }
        }
        try await self.offered(raw, id)
        try await raw.send(.resource(.accept(ResourceAccept(id: id, offset: 0, limit: limit))))
        _ = try await raw.next { if case .resource(.chunk(let chunk)) = $0, chunk.data.readableBytes == Int(limit) { () } else { nil } }
        return Sending(raw: raw, alice: alice, session: session, id: id, call: call)
    }

    private func offered(_ raw: RawPeer, _ id: ResourceID) async throws {
        let offer = try await raw.next { if case .resource(.offer(let offer)) = $0 { offer } else { nil } }
        #expect(offer.id == id && offer.size == 10 && offer.name == "source")
    }

    @Test func itResumesFromWhatTheReceiverHas() async throws {
        let sending = try await self.sending()
        let (alice, id) = (sending.alice, sending.id)
        await sending.raw.close()
        try await eventually("it is paused") { try await alice.node.resource(id).state == .paused }
        let again = try await sending.raw.back(to: alice, in: sending.session)
        try await self.offered(again, id)
        let hash = try XXH3()
        hash.update(ByteBuffer(string: "0123"))
        try await again.send(.resource(.have(ResourceHave(id: id, offset: 4, digest: hash.digest()))))
        #expect(try await again.next { if case .resource(.from(let from)) = $0 { from.offset } else { nil } } == 4)
        try await again.send(.resource(.accept(ResourceAccept(id: id, offset: 4, limit: 10))))
        let rest = try await again.next { if case .resource(.chunk(let chunk)) = $0 { String(buffer: chunk.data) } else { nil } }
        #expect(rest == "456789")
        _ = try await again.next { if case .resource(.end) = $0 { () } else { nil } }
        try await again.send(.resource(.done(id)))
        #expect(try await sending.call.value.map(\.state) == [.completed])
        await again.close()
        await alice.stop()
    }

    /// The caller leaves while the peer is away. The transfer ends, and the peer hears of that when it is back.
    @Test func itEndsWithItsCaller() async throws {
        let sending = try await self.sending()
        let (alice, id) = (sending.alice, sending.id)
        await sending.raw.close()
        try await eventually("it is paused") { try await alice.node.resource(id).state == .paused }
        sending.call.cancel()
        await #expect(throws: EarshotError.self) { try await sending.call.value }
        let row = try await alice.node.resource(id)
        #expect(row.state.isFinal && row.error == .cancelled, "\(row)")
        let again = try await sending.raw.back(to: alice, in: sending.session)
        let ended = try await again.next { if case .resource(.cancel(let cancel)) = $0 { cancel.id } else { nil } }
        #expect(ended == id)
        await again.close()
        await alice.stop()
    }

    /// After a restart, the open file is gone. The transfer has failed, and the peer is told.
    @Test func itEndsWithTheDaemon() async throws {
        let sending = try await self.sending()
        let id = sending.id
        await sending.raw.close()
        try await eventually("it is paused") { try await sending.alice.node.resource(id).state == .paused }
        await sending.alice.stop()
        await #expect(throws: (any Error).self) { try await sending.call.value }
        let alice = try await TestNode("alice", in: sending.alice.state)
        #expect(try await alice.node.resource(id).state.isFinal)
        await alice.stop()
    }
}
