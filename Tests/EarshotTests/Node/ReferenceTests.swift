import NIOCore
import Testing

@testable import Earshot

/// Peers and groups are referred to by their ids as by their names.
@Suite struct ReferenceTests {
    @Test func anIDIsTakenWhereANameIs() async throws {
        let (alice, bob) = try await pair()
        let (node, id) = (alice.node, bob.node.id)
        let group = try await node.createGroup(name: "team")
        #expect(try await node.peer(id) == node.peer("bob"))
        #expect(try await node.group(group.id) == node.group("team"))
        #expect(try await node.explainPolicy(id).peerID == id)
        #expect(try await node.setTrust(.trusted, for: id).trust == .trusted)
        #expect(try await node.renameGroup(group.id, to: "crew").name == "crew")
        #expect(try await node.invite(id).state == .accepted, "there is a session already")
        let sent = try await node.send(to: .peers([id]), contentType: "text/plain", body: ByteBuffer(string: "hello"))
        #expect(sent.recipients.map(\.status) == [.delivered])
        #expect(try await bob.node.messages(from: node.id).map(\.id) == [sent.id])
        #expect(try await bob.node.messages(from: node.id, in: GroupID.random()).isEmpty)
        #expect(try await bob.node.message(sent.id, from: node.id).senderID == node.id)
        try await node.dissolveGroup(group.id)
        await #expect(throws: EarshotError.self) { try await node.group(group.id) }
        let unseen = PeerID(subjectPublicKeyInfo: [1])
        let error = await #expect(throws: EarshotError.self) { try await node.peer(unseen) }
        #expect(error?.code == .unknownPeer)
    }
}
