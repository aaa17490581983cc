import EarshotWire
import Foundation
import NIOCore
import OrderedCollections
import Testing

@testable import Earshot
@testable import EarshotCore

/// Files that wait for absent peers.
@Suite(.timeLimit(.minutes(1))) struct NodeQueuedResourceTests {
    private func write(_ text: String, at node: TestNode) throws -> String {
        let path = node.directory + "/later.txt"
        try Data(text.utf8).write(to: URL(fileURLWithPath: path))
        return path
    }

    private func body(_ pieces: String...) -> AsyncThrowingStream<ByteBuffer, any Error> {
        AsyncThrowingStream { stream in
            for piece in pieces { stream.yield(ByteBuffer(string: piece)) }
            stream.finish()
        }
    }

    private func content(_ node: TestNode, _ id: ResourceID) async throws -> String {
        String(buffer: try await node.node.resourceContent(id).read(at: 0, count: 100))
    }

    @Test func overRestartsOfBoth() async throws {
        let (alice, bob) = try await pair()
        await bob.stop()
        let path = try self.write("by its path", at: alice)
        let name = bob.node.id.description
        let byPath = try #require(try await alice.node.sendResource(to: [name], path: path, queue: true).first)
        let kept = try #require(
            try await alice.node.queueResource(to: [name], name: "body.txt", size: 10, body: self.body("01234", "56789")).first)
        #expect(byPath.state == .offered && kept.state == .offered)
        await alice.stop()
        let alice2 = try await TestNode("alice", in: alice.state)
        #expect(try await alice2.node.resource(byPath.id).state == .offered)
        let bob2 = try await TestNode("bob", in: bob.state)
        alice2.sees(bob2)
        bob2.sees(alice2)
        try await eventually("both arrive") {
            let states = [try await alice2.node.resource(byPath.id).state, try await alice2.node.resource(kept.id).state]
            return states == [.completed, .completed]
        }
        #expect(try await self.content(bob2, byPath.id) == "by its path")
        #expect(try await self.content(bob2, kept.id) == "0123456789")
        try await eventually("the body has left the sender's spool") { await alice2.node.spool.heldBytes() == 0 }
        await alice2.stop()
        await bob2.stop()
    }

    @Test func aTrustedPeerIsInvitedWhenItIsSeen() async throws {
        let (alice, bob) = try await pair(inSession: false, configureBob: { $0.fromUnknown = .accept })
        _ = try await alice.node.setTrust(.trusted, for: bob.node.id.description)
        await bob.stop()
        let path = try self.write("welcome", at: alice)
        let row = try #require(try await alice.node.sendResource(to: [bob.node.id.description], path: path, queue: true).first)
        let bob2 = try await TestNode("bob", in: bob.state) { $0.fromUnknown = .accept }
        alice.sees(bob2)
        try await eventually("it arrives") { try await alice.node.resource(row.id).state == .completed }
        await alice.stop()
        await bob2.stop()
    }

    @Test func atTheEndOfItsTimeItFails() async throws {
        let (alice, bob) = try await pair(configureAlice: { $0.outboxAge = .milliseconds(50) })
        await bob.stop()
        try await eventually("alice has noticed") { await alice.node.connection(to: bob.node.id) == nil }
        let path = try self.write("late", at: alice)
        let row = try #require(try await alice.node.sendResource(to: [bob.node.id.description], path: path, queue: true).first)
        try await eventually("its time is up") { try await alice.node.resource(row.id).error == .notSent }
        await alice.stop()
    }

    @Test func distrustEndsWhatWaits() async throws {
        let (alice, bob) = try await pair(inSession: false)
        let name = bob.node.id.description
        _ = try await alice.node.setTrust(.trusted, for: name)
        await bob.stop()
        let row = try #require(
            try await alice.node.queueResource(to: [name], name: "x", size: 3, body: self.body("abc")).first)
        #expect(await alice.node.spool.heldBytes() == fileRoom(3))
        _ = try await alice.node.setTrust(.unknown, for: name)
        #expect(try await alice.node.resource(row.id).error == .notConnected)
        try await eventually("its body is gone") { await alice.node.spool.heldBytes() == 0 }
        let error = await #expect(throws: EarshotError.self) {
            try await alice.node.queueResource(to: [name], name: "x", size: 3, body: self.body("abc"))
        }
        #expect(error?.code == .notConnected)
        await alice.stop()
    }

    @Test func aBodyOfAnotherLengthIsNotKept() async throws {
        let (alice, bob) = try await pair()
        let name = bob.node.id.description
        for (body, code) in [(self.body("ab"), EarshotError.Code.invalidParameter), (self.body("ab", "cd"), .tooLarge)] {
            let error = await #expect(throws: EarshotError.self) {
                try await alice.node.queueResource(to: [name], name: "x", size: 3, body: body)
            }
            #expect(error?.code == code)
        }
        #expect(await alice.node.spool.heldBytes() == 0)
        #expect(try alice.spoolNames() == [])
        #expect(await alice.node.resources().isEmpty)
        await alice.stop()
        await bob.stop()
    }

    @Test func queuedResourcesAboveTheLimitAreRefused() async throws {
        let (alice, bob) = try await pair()
        await bob.stop()
        let path = try self.write("x", at: alice)
        await alice.node.pretendToQueue(EarshotLimits.queuedResources - 1, for: bob.node.id)
        let name = bob.node.id.description
        _ = try await alice.node.sendResource(to: [name], path: path, queue: true)
        let error = await #expect(throws: EarshotError.self) {
            try await alice.node.sendResource(to: [name], path: path, queue: true)
        }
        #expect(error?.code == .noSpace)
        await alice.stop()
    }
}

extension Node {
    fileprivate func pretendToQueue(_ count: Int, for peer: PeerID) {
        for number in 0..<count {
            let id = ResourceID(high: 1, low: UInt64(number))
            let row = Resource(
                id: id, direction: .outgoing, peerID: peer, peerName: "x", name: "x", kind: .file, size: 0, state: .offered,
                createdAt: Date())
            self.core.transfers.put(
                TransferRecord(row: row, stored: StoredTransfer(id: id, source: .path, isQueued: true, expiresAt: .distantFuture)))
        }
    }
}
