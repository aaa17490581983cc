import EarshotWire
import NIOCore
import Testing

@testable import Earshot

/// The code, or the silence, with which a connection is closed before its peer is proven.
@Suite(.timeLimit(.minutes(1))) struct HandshakeClosingTests {
    private func node() async throws -> TestNode {
        try await TestNode("bob") {
            $0.fromUnknown = .accept
            $0.encryption = .none
        }
    }

    /// The connection is closed at the first wrong byte, not later.
    @Test func anotherPreambleClosesAtItsFirstWrongByte() async throws {
        let bob = try await self.node()
        let raw = try await RawPeer(to: bob, tls: false)
        try await raw.send(bytes: Array("EARx".utf8))
        #expect(await raw.refusal() == .protocolViolation)
        await bob.stop()
    }

    /// Unknown frames before the hello, and before a data connection's token.
    @Test func whatIsSkippedChangesNothing() async throws {
        let bob = try await self.node()
        let raw = try await RawPeer(to: bob, tls: false)
        let skipped: [UInt8] = [0, 0, 0, 2, 0x80, 1, 2]
        try await raw.send(bytes: WireLimits.preamble + skipped)
        let hello = try raw.hello()
        try await raw.send(.hello(hello))
        let theirs = try #require(await raw.next())
        #expect(theirs.type == .hello)
        await raw.close()
        let data = try await RawPeer(to: bob, tls: false)
        try await data.proveForData()
        try await data.send(bytes: skipped)
        try await data.send(.dataAttach(DataToken()))
        #expect(await data.refusal() == .declined)
        await bob.stop()
    }

    /// A peer that refuses this side gets no more frames from it.
    @Test func aRefusalIsNotAnswered() async throws {
        let bob = try await self.node()
        let raw = try await RawPeer(to: bob, tls: false)
        try await raw.send(.refusal(Refusal(code: .busy)), preamble: true)
        #expect(await raw.next() == nil)
        await bob.stop()
    }

    /// During a session, every invitation is answered with that session, whatever the invitation's id.
    @Test func anInvitationWhileASessionStands() async throws {
        let bob = try await self.node()
        let raw = try await RawPeer(to: bob, tls: false)
        try await raw.prove()
        let session = try await raw.join()
        #expect(try await raw.join() == session)
        #expect(await bob.node.sessions().map(\.id) == [session])
        await raw.close()
        await bob.stop()
    }
}
