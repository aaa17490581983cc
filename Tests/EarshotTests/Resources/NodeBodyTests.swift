import EarshotWire
import Foundation
import NIOCore
import Testing

@testable import Earshot

/// A transfer ends while the bytes of its file still arrive from a caller. For any reason of the end, the caller learns of it immediately,
/// the body is not read after the call has returned, and the node continues to work.
@Suite(.timeLimit(.minutes(1))) struct NodeBodyTests {
    private struct Sending {
        let raw: RawPeer
        let alice: TestNode
        let session: SessionID
        let body: SharedBody
        let id: ResourceID
        let call: Task<[Resource], any Error>

        /// Returns the caller's error. The body then belongs to the caller again.
        func told() async throws -> EarshotError.Code? {
            let error = await #expect(throws: EarshotError.self) { try await self.call.value }
            #expect(await self.body.isOver())
            #expect(try await self.alice.node.resource(self.id).state.isFinal)
            return error?.code
        }

        func end() async {
            await self.raw.close()
            await self.alice.stop()
        }
    }

    /// Creates a peer with frames from the test, which is offered a file of 10 bytes, of which `there` have arrived, and accepts it if
    /// `limit` is set.
    private func sending(_ there: String = "0123", accepted limit: UInt64? = 10) async throws -> Sending {
        let alice = try await TestNode("alice") { $0.fromUnknown = .accept }
        let raw = try await RawPeer(to: alice)
        try await raw.prove()
        let session = try await raw.join()
        let body = SharedBody()
        body.bring(there)
        let call = Task { try await alice.node.sendResource(to: [raw.id.description], name: "x", size: 10, body: body) }
        let id = try await raw.next { if case .resource(.offer(let offer)) = $0 { offer.id } else { nil } }
        if let limit {
            try await raw.send(.resource(.accept(ResourceAccept(id: id, offset: 0, limit: limit))))
            _ = try await raw.next { if case .resource(.chunk) = $0 { () } else { nil } }
        }
        return Sending(raw: raw, alice: alice, session: session, body: body, id: id, call: call)
    }

    @Test func theReceiverCancels() async throws {
        let sending = try await self.sending()
        try await sending.raw.send(.resource(.cancel(ResourceRefuse(id: sending.id, refusal: Refusal(code: .cancelled)))))
        #expect(try await sending.told() == .cancelled)
        await sending.end()
    }

    @Test(arguments: [nil, 10 as UInt64]) func theReceiverRefuses(accepted limit: UInt64?) async throws {
        let sending = try await self.sending(accepted: limit)
        try await sending.raw.send(.resource(.refuse(ResourceRefuse(id: sending.id, refusal: Refusal(code: .declined)))))
        #expect(try await sending.told() == .declined)
        await sending.end()
    }

    @Test(arguments: [nil, 10 as UInt64]) func aPersonHereCancels(accepted limit: UInt64?) async throws {
        let sending = try await self.sending(accepted: limit)
        _ = try await sending.alice.node.removeResource(sending.id)
        #expect(try await sending.told() == .cancelled)
        _ = try await sending.raw.next { if case .resource(.cancel) = $0 { () } else { nil } }
        await sending.end()
    }

    @Test func theCallerGoes() async throws {
        let sending = try await self.sending()
        sending.call.cancel()
        #expect(try await sending.told() == .cancelled)
        _ = try await sending.raw.next { if case .resource(.cancel) = $0 { () } else { nil } }
        await sending.end()
    }

    @Test func theBodyFails() async throws {
        let sending = try await self.sending()
        sending.body.source.finish(EarshotError(.tooLarge, "x"))
        #expect(try await sending.told() == .tooLarge)
        await sending.end()
    }

    @Test func theBodyIsTooShort() async throws {
        let sending = try await self.sending()
        sending.body.source.finish()
        #expect(try await sending.told() == .invalidParameter)
        await sending.end()
    }

    @Test func theBodyIsTooLong() async throws {
        let sending = try await self.sending("0123456789a")
        #expect(try await sending.told() == .tooLarge)
        await sending.end()
    }

    @Test func theConnectionIsLost() async throws {
        let sending = try await self.sending()
        await sending.raw.close()
        #expect(try await sending.told() == .unavailable)
        await sending.end()
    }

    @Test(arguments: [true, false]) func theSessionEnds(byPeer: Bool) async throws {
        let sending = try await self.sending()
        if byPeer {
            try await sending.raw.send(.sessionEnd(sending.session))
        } else {
            try await sending.alice.node.leave(sending.session)
        }
        #expect(try await sending.told() == .notConnected)
        await sending.end()
    }

    @Test func thePeerIsBlocked() async throws {
        let sending = try await self.sending()
        _ = try await sending.alice.node.setTrust(.blocked, for: sending.raw.id.description)
        #expect(try await sending.told() == .notConnected)
        await sending.end()
    }

    @Test func aFaultOfThePeersClosesTheConnection() async throws {
        let sending = try await self.sending()
        try await sending.raw.send(.resource(.accept(ResourceAccept(id: sending.id, offset: 0, limit: 11))))
        #expect(try await sending.told() == .protocolViolation)
        await sending.end()
    }

    /// The daemon ends the transfers before it stops, because the callers' connections would delay the stop.
    @Test func theDaemonIsAboutToStop() async throws {
        let sending = try await self.sending()
        sending.alice.node.endStreams()
        #expect(try await sending.told() == .unavailable)
        _ = try await sending.raw.next { if case .resource(.cancel) = $0 { () } else { nil } }
        let late = await #expect(throws: EarshotError.self) {
            try await sending.alice.node.sendResource(to: [sending.raw.id.description], name: "y", size: 10, body: SharedBody())
        }
        #expect(late?.code == .unavailable)
        await sending.end()
    }

    @Test func theNodeStops() async throws {
        let sending = try await self.sending()
        await sending.alice.stop()
        #expect(try await sending.told() == .unavailable)
        await sending.raw.close()
    }

    /// Over a data connection, the receiver sends an offset again. Earlier bytes of a body are no longer available.
    @Test func theReceiverAsksForAnotherOffset() async throws {
        let alice = try await TestNode("alice") { $0.fromUnknown = .accept }
        let raw = try await RawPeer(to: alice)
        try await raw.prove()
        _ = try await raw.join()
        let body = SharedBody()
        let size = EarshotLimits.dataThreshold
        body.bring(String(repeating: "x", count: 1000))
        let call = Task { try await alice.node.sendResource(to: [raw.id.description], name: "x", size: size, body: body) }
        let id = try await raw.next { if case .resource(.offer(let offer)) = $0 { offer.id } else { nil } }
        // First over a data connection that neither side dials, and then over this connection, but not at the body's offset.
        try await raw.send(.resource(.accept(ResourceAccept(id: id, offset: 0, limit: 0))))
        try await raw.send(.resource(.accept(ResourceAccept(id: id, offset: 500, limit: 1500))))
        let cancel = try await raw.next { if case .resource(.cancel(let cancel)) = $0 { cancel } else { nil } }
        #expect(cancel.id == id)
        let error = await #expect(throws: EarshotError.self) { try await call.value }
        #expect(error?.code == .unavailable)
        #expect(await body.isOver())
        await raw.close()
        await alice.stop()
    }

    /// A transfer that is not accepted waits without a limit, together with its body.
    @Test func thePeerIsNotThere() async throws {
        let alice = try await TestNode("alice") { $0.fromUnknown = .accept }
        let raw = try await RawPeer(to: alice)
        try await raw.prove()
        let session = try await raw.join()
        await raw.close()
        try await eventually("it is away") { try await alice.node.peer(raw.id.description).state != .connected }
        let body = SharedBody()
        body.bring("0123")
        let call = Task { try await alice.node.sendResource(to: [raw.id.description], name: "x", size: 10, body: body) }
        try await eventually("it waits") { await alice.node.resources().count == 1 }
        try await alice.node.leave(session)
        let error = await #expect(throws: EarshotError.self) { try await call.value }
        #expect(error?.code == .notConnected)
        #expect(await body.isOver())
        await alice.stop()
    }
}
