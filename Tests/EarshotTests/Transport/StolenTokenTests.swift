import EarshotWire
import Foundation
import Testing

@testable import Earshot

/// A data connection's token, which is bound to one peer and used once.
@Suite(.timeLimit(.minutes(1))) struct StolenTokenTests {
    /// Opens a data connection with the whole handshake, and presents the token.
    private func attach(_ token: DataToken, to bob: TestNode, as identity: Identity? = nil) async throws -> RawPeer {
        let raw = try await RawPeer(to: bob, as: identity)
        var hello = try makeHello(raw.identity, raw.name)
        hello.extensions = [.dataConnection]
        try await raw.prove(hello: hello)
        try await raw.send(.dataAttach(token))
        return raw
    }

    @Test func aTokenServesItsOwnerOnceAndNobodyElse() async throws {
        let bob = try await TestNode("bob") { $0.fromUnknown = .accept }
        let owner = try await RawPeer(to: bob)
        try await owner.prove()
        _ = try await owner.join()
        let path = bob.directory + "/large"
        try NodeDataTests.content().write(to: URL(fileURLWithPath: path))
        _ = try await bob.node.sendResource(to: [owner.id.description], path: path)
        let offer = try await owner.next { if case .resource(.offer(let offer)) = $0 { offer } else { nil } }
        try await owner.send(.resource(.accept(ResourceAccept(id: offer.id, offset: 0, limit: 0))))
        let ticket = try await owner.next { if case .dataTicket(let ticket) = $0 { ticket } else { nil } }
        // Another key with an intercepted or an invented token is refused, and the token is not used up.
        for token in [ticket.token, DataToken()] {
            _ = await (try await self.attach(token, to: bob)).refusal()
        }
        let rows = await bob.node.resources()
        #expect(rows.map(\.transferred) == [0])
        let real = try await self.attach(ticket.token, to: bob, as: owner.identity)
        try await eventually("the owner is served") { await bob.node.resources().first?.transferred ?? 0 > 0 }
        // A second use, even by its owner, is refused.
        _ = await (try await self.attach(ticket.token, to: bob, as: owner.identity)).refusal()
        await real.close()
        await owner.close()
        await bob.stop()
    }
}
