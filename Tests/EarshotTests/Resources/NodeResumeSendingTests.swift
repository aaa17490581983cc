import EarshotWire
import Foundation
import NIOCore
import OrderedCollections
import Testing

@testable import Earshot
@testable import EarshotCore

/// Sending: resuming after an interruption, starting again, and the frames about it. The test controls the receiver's frames.
@Suite(.timeLimit(.minutes(1))) struct NodeResumeSendingTests {
    private func write(_ text: String, at node: TestNode) throws -> String {
        let path = node.directory + "/source"
        try Data(text.utf8).write(to: URL(fileURLWithPath: path))
        return path
    }

    private func offer(_ raw: RawPeer) async throws -> ResourceOffer {
        try await raw.next { if case .resource(.offer(let offer)) = $0 { offer } else { nil } }
    }

    private func from(_ raw: RawPeer) async throws -> UInt64 {
        try await raw.next { if case .resource(.from(let from)) = $0 { from.offset } else { nil } }
    }

    private func digest(_ text: String) throws -> [UInt8] {
        let hash = try XXH3()
        hash.update(ByteBuffer(string: text))
        return hash.digest()
    }

    /// Returns the bytes from `offset` up to `size`, and the digest at the end.
    private func receive(_ id: ResourceID, _ offset: UInt64, _ size: UInt64, _ raw: RawPeer) async throws -> (String, ResourceEnd) {
        try await raw.send(.resource(.accept(ResourceAccept(id: id, offset: offset, limit: size))))
        var text = ByteBuffer()
        let end = try await raw.next { frame -> ResourceEnd? in
            if case .resource(.chunk(let chunk)) = frame { text.writeImmutableBuffer(chunk.data) }
            if case .resource(.end(let end)) = frame { return end }
            return nil
        }
        return (String(buffer: text), end)
    }

    /// Sends a file that is accepted for 4 of its 10 bytes, which arrive, and loses the connection.
    private func interrupted(_ raw: RawPeer, _ alice: TestNode, path: String) async throws -> ResourceID {
        let row = try #require(try await alice.node.sendResource(to: [raw.id.description], path: path).first)
        #expect(try await self.offer(raw).id == row.id)
        try await raw.send(.resource(.accept(ResourceAccept(id: row.id, offset: 0, limit: 4))))
        _ = try await raw.next { if case .resource(.chunk(let chunk)) = $0, chunk.data.readableBytes == 4 { () } else { nil } }
        await raw.close()
        try await eventually("it is paused") { try await alice.node.resource(row.id).state == .paused }
        return row.id
    }

    @Test func itGoesOnBehindWhatTheReceiverHas() async throws {
        let (raw, alice, session) = try await RawPeer.joined()
        let id = try await self.interrupted(raw, alice, path: try self.write("0123456789", at: alice))
        // Also after a restart of the sender.
        await alice.stop()
        let alice2 = try await TestNode("alice", in: alice.state)
        #expect(try await alice2.node.resource(id).state == .paused)
        let again = try await raw.back(to: alice2, in: session)
        let offer = try await self.offer(again)
        #expect(offer.id == id && offer.size == 10 && offer.name == "source")
        try await again.send(.resource(.have(ResourceHave(id: id, offset: 4, digest: try self.digest("0123")))))
        #expect(try await self.from(again) == 4)
        let (text, end) = try await self.receive(id, 4, 10, again)
        #expect(text == "456789")
        #expect(end.digest == (try self.digest("0123456789")))
        try await again.send(.resource(.done(id)))
        try await eventually("it is complete") { try await alice2.node.resource(id).state == .completed }
        #expect(try await alice2.node.resource(id).transferred == 10)
        await again.close()
        await alice2.stop()
    }

    @Test func whatTheReceiverHasMayBeSomethingElse() async throws {
        let (raw, alice, session) = try await RawPeer.joined()
        let id = try await self.interrupted(raw, alice, path: try self.write("0123456789", at: alice))
        let again = try await raw.back(to: alice, in: session)
        _ = try await self.offer(again)
        try await again.send(.resource(.have(ResourceHave(id: id, offset: 4, digest: try self.digest("012x")))))
        #expect(try await self.from(again) == 0)
        let (text, end) = try await self.receive(id, 0, 10, again)
        #expect(text == "0123456789")
        #expect(end.digest == (try self.digest("0123456789")))
        await again.close()
        await alice.stop()
    }

    @Test(arguments: ["0123456789abc", "012345678x"]) func aSourceThatHasChangedIsSentAfresh(_ changed: String) async throws {
        let (raw, alice, session) = try await RawPeer.joined()
        let path = try self.write("0123456789", at: alice)
        let old = Date(timeIntervalSince1970: 1_000_000_000)
        try FileManager.default.setAttributes([.modificationDate: old], ofItemAtPath: path)
        let id = try await self.interrupted(raw, alice, path: path)
        _ = try self.write(changed, at: alice)
        let again = try await raw.back(to: alice, in: session)
        #expect(try await self.offer(again).size == UInt64(changed.utf8.count))
        // The beginning is the same, but a receiver must not have to rely on that.
        try await again.send(.resource(.have(ResourceHave(id: id, offset: 4, digest: try self.digest("0123")))))
        #expect(try await self.from(again) == 0)
        let (text, end) = try await self.receive(id, 0, UInt64(changed.utf8.count), again)
        #expect(text == changed)
        #expect(try await alice.node.resource(id).size == UInt64(changed.utf8.count))
        #expect(end.digest == (try self.digest(changed)))
        await again.close()
        await alice.stop()
    }

    @Test func aSourceThatHasGone() async throws {
        let (raw, alice, session) = try await RawPeer.joined()
        let path = try self.write("0123456789", at: alice)
        let id = try await self.interrupted(raw, alice, path: path)
        try FileManager.default.removeItem(atPath: path)
        let again = try await raw.back(to: alice, in: session)
        // The receiver is told, so that it drops its bytes.
        #expect(try await self.offer(again).id == id)
        let told = try await again.next { if case .resource(.cancel(let cancel)) = $0 { cancel } else { nil } }
        #expect(told.id == id && told.refusal.code == .unavailable)
        #expect(try await alice.node.resource(id).error == .invalidSource)
        await again.close()
        await alice.stop()
    }

    @Test func theWordThatItArrivedWasLost() async throws {
        let (raw, alice, session) = try await RawPeer.joined()
        let id = try await self.interrupted(raw, alice, path: try self.write("0123456789", at: alice))
        let again = try await raw.back(to: alice, in: session)
        _ = try await self.offer(again)
        try await again.send(.resource(.done(id)))
        try await eventually("it is complete") { try await alice.node.resource(id).state == .completed }
        await again.close()
        await alice.stop()
    }

    @Test func cancelledWhileTheReceiverIsAway() async throws {
        let (raw, alice, session) = try await RawPeer.joined()
        let id = try await self.interrupted(raw, alice, path: try self.write("0123456789", at: alice))
        #expect(try await alice.node.removeResource(id)?.state == .cancelled)
        // Also told after a restart, and only once.
        await alice.stop()
        let alice2 = try await TestNode("alice", in: alice.state)
        let again = try await raw.back(to: alice2, in: session)
        #expect(try await self.offer(again).id == id)
        let told = try await again.next { if case .resource(.cancel(let cancel)) = $0 { cancel } else { nil } }
        #expect(told.id == id && told.refusal.code == .cancelled)
        await again.close()
        let third = try await raw.back(to: alice2, in: session)
        try await third.roundTrip()
        #expect(await alice2.node.untold() == 0)
        await third.close()
        await alice2.stop()
    }

    @Test func aBodyThatPassedByCannotGoOn() async throws {
        let (raw, alice, session) = try await RawPeer.joined()
        let (stream, body) = AsyncThrowingStream.makeStream(of: ByteBuffer.self)
        body.yield(ByteBuffer(string: "0123"))
        let sending = Task {
            try await alice.node.sendResource(to: [raw.id.description], name: "x", size: 10, body: stream)
        }
        let id = try await self.offer(raw).id
        try await raw.send(.resource(.accept(ResourceAccept(id: id, offset: 0, limit: 4))))
        _ = try await raw.next { if case .resource(.chunk) = $0 { () } else { nil } }
        await raw.close()
        let error = await #expect(throws: EarshotError.self) { try await sending.value }
        #expect(error?.code == .unavailable)
        let again = try await raw.back(to: alice, in: session)
        #expect(try await self.offer(again).id == id)
        let told = try await again.next { if case .resource(.cancel(let cancel)) = $0 { cancel } else { nil } }
        #expect(told.id == id)
        await again.close()
        await alice.stop()
    }

    @Test func transfersAboveTheLimitWaitForTheirTurn() async throws {
        let (raw, alice, _) = try await RawPeer.joined()
        let path = try self.write("0123456789", at: alice)
        var ids: [ResourceID] = []
        for _ in 0...EarshotLimits.outgoingTransfers {
            ids.append(try #require(try await alice.node.sendResource(to: [raw.id.description], path: path).first).id)
        }
        for id in ids.dropLast() { #expect(try await self.offer(raw).id == id) }
        try await raw.roundTrip()
        #expect(await alice.node.jobs(to: raw.id) == EarshotLimits.outgoingTransfers)
        // The next transfer has its turn when one has ended.
        try await raw.send(.resource(.refuse(ResourceRefuse(id: ids[3], refusal: Refusal(code: .declined)))))
        #expect(try await self.offer(raw).id == ids.last)
        await raw.close()
        await alice.stop()
    }

    /// The source is opened once for all recipients, and the first transfer uses it. Each of the others opens it in its state at that
    /// time.
    @Test func theSourceIsOpenedOnceForSeveralRecipients() async throws {
        let (raw, alice, session) = try await RawPeer.joined()
        let others = [try await RawPeer(to: alice, name: "trudy"), try await RawPeer(to: alice, name: "carol")]
        for other in others {
            try await other.prove()
            _ = try await other.join()
        }
        await raw.close()
        let path = try self.write("0123456789", at: alice)
        let names = ([raw] + others).map(\.id.description)
        let rows = try await alice.node.sendResource(to: names, path: path, queue: true)
        #expect(rows.map(\.peerID.description) == names)
        #expect(rows.allSatisfy { $0.size == 10 && $0.name == "source" })
        for (other, row) in zip(others, rows.dropFirst()) {
            #expect(try await self.offer(other).id == row.id)
            let (text, end) = try await self.receive(row.id, 0, 10, other)
            #expect(text == "0123456789")
            #expect(end.digest == (try self.digest("0123456789")))
            try await other.send(.resource(.done(row.id)))
        }
        _ = try self.write("0123456789abc", at: alice)
        let again = try await raw.back(to: alice, in: session)
        let offer = try await self.offer(again)
        #expect(offer.id == rows.first?.id)
        #expect(offer.size == 13)
        let (text, end) = try await self.receive(offer.id, 0, 13, again)
        #expect(text == "0123456789abc")
        #expect(end.digest == (try self.digest("0123456789abc")))
        for peer in others + [again] { await peer.close() }
        await alice.stop()
    }

    /// All transfers that start within the call have the content of that time, although the caller deletes the file after it.
    @Test func toSeveralOfAFileThatIsRemoved() async throws {
        let (raw, alice, _) = try await RawPeer.joined()
        let other = try await RawPeer(to: alice, name: "trudy")
        try await other.prove()
        _ = try await other.join()
        let path = try self.write("0123456789", at: alice)
        let peers = [raw, other]
        let rows = try await alice.node.sendResource(to: peers.map(\.id.description), path: path)
        try FileManager.default.removeItem(atPath: path)
        for (peer, row) in zip(peers, rows) {
            #expect(try await self.offer(peer).id == row.id)
            #expect(try await self.receive(row.id, 0, 10, peer).0 == "0123456789")
        }
        for peer in peers { await peer.close() }
        await alice.stop()
    }

    @Test func sha256OnRequest() async throws {
        let (alice, bob) = try await pair()
        let path = try self.write("abc", at: alice)
        let sent = try #require(try await alice.node.sendResource(to: ["bob"], path: path, digest: .sha256).first)
        let digest = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        try await eventually("it is there") { try await alice.node.resource(sent.id).state == .completed }
        #expect(try await alice.node.resource(sent.id).digest == digest)
        #expect(try await bob.node.resource(sent.id).digest == digest)
        let body = AsyncThrowingStream<ByteBuffer, any Error> {
            $0.yield(ByteBuffer(string: "abc"))
            $0.finish()
        }
        let streamed = try await alice.node.sendResource(to: ["bob"], name: "y", size: 3, digest: .sha256, body: body)
        #expect(streamed.first?.digest == digest)
        #expect(try await bob.node.resource(try #require(streamed.first?.id)).digest == digest)
        await alice.stop()
        await bob.stop()
    }
}

extension Node {
    fileprivate func untold() -> Int { self.core.transfers.count(.untold) }

    fileprivate func jobs(to peer: PeerID) -> Int { self.core.transfers.count(of: peer, .outgoingMover) }
}
