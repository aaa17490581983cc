import Dispatch
import EarshotWaiting
import EarshotWire
import Foundation
import NIOCore
import NIOEmbedded
import Testing

@testable import Earshot

extension Store {
    /// Keeps the disk busy until `released`.
    fileprivate func occupy(from begun: OneShot<Void>, until released: DispatchSemaphore) {
        begun.settle(())
        released.wait()
    }
}

extension TestNode {
    /// Returns the charged bytes of a peer.
    fileprivate func charged(to peer: PeerID) async -> Int { await self.node.transport.accounts.account(of: peer).bytes }
}

/// A node whose disk is busy until it is released.
private struct BusyDisk {
    private let released = DispatchSemaphore(value: 0)
    private let holding: Task<Void, Never>

    init(of node: TestNode) async {
        let begun = OneShot<Void>()
        self.holding = Task { [released] in await node.node.store.occupy(from: begun, until: released) }
        await begun.value()
    }

    func release() async {
        self.released.signal()
        await self.holding.value
    }
}

/// Work caused by a peer's frames is charged to the peer until it is done: changes of the store until they are on disk, jobs until they
/// have returned, timers until they fire or are cancelled.
@Suite(.timeLimit(.minutes(2))) struct NodeCauseTests {
    private func member(of node: TestNode) async throws -> (RawPeer, SessionID) {
        let raw = try await RawPeer(to: node)
        try await raw.prove()
        let session = try await raw.join()
        try await raw.roundTrip()
        try await eventually("joining is on disk") { await node.charged(to: raw.id) == 0 }
        return (raw, session)
    }

    private static func cancel(_ id: ResourceID) -> Frame {
        .resource(.cancel(ResourceRefuse(id: id, refusal: Refusal(code: .cancelled, explanation: ""))))
    }

    @Test func offersAndCancels() async throws {
        let bob = try await TestNode("bob") { $0.fromUnknown = .accept }
        let (raw, session) = try await self.member(of: bob)
        let disk = await BusyDisk(of: bob)
        for number in 0..<20 {
            let id = ResourceID.random()
            try await raw.send(raw.offer("x\(number)", size: 10, in: session, id: id), Self.cancel(id))
        }
        try await raw.roundTrip()
        // Twenty rows that were created and removed. They are written together, but each change was charged.
        #expect(await bob.charged(to: raw.id) >= 40 * EarshotLimits.storeWorkCharge)
        await disk.release()
        try await eventually("all is given back") { await bob.charged(to: raw.id) == 0 }
        await raw.close()
        await bob.stop()
    }

    /// An offer that waits for the user is charged for its timer, and for nothing after it is withdrawn.
    @Test func whatWaitsForAPerson() async throws {
        let bob = try await TestNode("bob") {
            $0.fromUnknown = .accept
            $0.acceptResources = .ask
        }
        let (raw, session) = try await self.member(of: bob)
        let ids = (0..<EarshotLimits.waitingOffers).map { _ in ResourceID.random() }
        for id in ids { try await raw.send(raw.offer("x", size: 10, in: session, id: id)) }
        try await raw.roundTrip()
        try await eventually("only the timers are left") {
            await bob.charged(to: raw.id) == EarshotLimits.waitingOffers * EarshotLimits.waitCharge
        }
        for id in ids { try await raw.send(Self.cancel(id)) }
        try await eventually("all is given back") { await bob.charged(to: raw.id) == 0 }
        await raw.close()
        await bob.stop()
    }

    @Test func streamsThatWait() async throws {
        let bob = try await TestNode("bob") { $0.fromUnknown = .accept }
        let (raw, session) = try await self.member(of: bob)
        let ids = (0..<EarshotLimits.waitingStreams).map { _ in StreamID.random() }
        for id in ids { try await raw.send(.stream(.open(StreamOpen(session: session, id: id, name: try StreamName("x"))))) }
        try await raw.roundTrip()
        #expect(await bob.charged(to: raw.id) == EarshotLimits.waitingStreams * EarshotLimits.waitCharge)
        for id in ids { try await raw.send(.stream(.abort(StreamRefuse(id: id, refusal: Refusal(code: .cancelled))))) }
        try await eventually("all is given back") { await bob.charged(to: raw.id) == 0 }
        await raw.close()
        await bob.stop()
    }

    /// A stranger whom the settings accept.
    @Test func anAcceptanceIsChargedToTheInviter() async throws {
        let bob = try await TestNode("bob") { $0.fromUnknown = .accept }
        let raw = try await RawPeer(to: bob)
        try await raw.prove()
        try await eventually("proving is on disk") { await bob.charged(to: raw.id) == 0 }
        let disk = await BusyDisk(of: bob)
        try await raw.send(.invite(Invite(id: .random(), timeoutMilliseconds: 60_000, context: [])))
        try await raw.roundTrip()
        #expect(await bob.charged(to: raw.id) == EarshotLimits.storeWorkCharge)
        await disk.release()
        try await eventually("all is given back") { await bob.charged(to: raw.id) == 0 }
        await raw.close()
        await bob.stop()
    }

    /// Receipts of messages that were queued for the peer change the outbox.
    @Test func receiptsOfQueuedMessages() async throws {
        let bob = try await TestNode("bob") { $0.fromUnknown = .accept }
        let (raw, _) = try await self.member(of: bob)
        let sent = try await bob.node.send(
            to: .peers([raw.id.description]), contentType: "text/plain", body: ByteBuffer(string: "x"), queue: true)
        _ = try await raw.next { if case .message(let message) = $0, message.id == sent.id { () } else { nil } }
        try await eventually("it is on its way") { await bob.charged(to: raw.id) == 0 }
        let disk = await BusyDisk(of: bob)
        try await raw.send(.messageReceipts([MessageReceipt(id: sent.id, outcome: .delivered)]))
        try await raw.roundTrip()
        #expect(await bob.charged(to: raw.id) >= EarshotLimits.storeWorkCharge)
        await disk.release()
        try await eventually("all is given back") { await bob.charged(to: raw.id) == 0 }
        await raw.close()
        await bob.stop()
    }

    /// With one more piece of work than there is room for, the peer is not read until it is done.
    @Test(arguments: [(EarshotLimits.storeWorkCharge, false), (EarshotLimits.storeWorkCharge + 1, true)])
    func storeWorkCharge(room: Int, isRead: Bool) async throws {
        let bob = try await TestNode("bob") { $0.fromUnknown = .accept }
        let (raw, _) = try await self.member(of: bob)
        let sent = try await bob.node.send(
            to: .peers([raw.id.description]), contentType: "text/plain", body: ByteBuffer(string: "x"), queue: true)
        _ = try await raw.next { if case .message(let message) = $0, message.id == sent.id { () } else { nil } }
        try await eventually("it is on its way") { await bob.charged(to: raw.id) == 0 }
        let account = await bob.node.transport.accounts.account(of: raw.id)
        let disk = await BusyDisk(of: bob)
        account.charge(EarshotLimits.unprocessedBytes - room)
        try await raw.send(.messageReceipts([MessageReceipt(id: sent.id, outcome: .delivered)]))
        try await eventually("the receipt is dealt with") {
            account.bytes == EarshotLimits.unprocessedBytes - room + EarshotLimits.storeWorkCharge
        }
        #expect(account.hasRoom(isMember: true) == isRead)
        await disk.release()
        try await eventually("there is room again") { account.hasRoom(isMember: true) }
        account.giveBack(EarshotLimits.unprocessedBytes - room)
        await raw.close()
        await bob.stop()
    }

    /// The same for an invitation of a blocked peer, until it is declined.
    @Test(arguments: [(EarshotLimits.blockedAnswerCharge, false), (EarshotLimits.blockedAnswerCharge + 1, true)])
    func blockedAnswerCharge(room: Int, isRead: Bool) async throws {
        let loop = NIOAsyncTestingEventLoop()
        let bob = try await TestNode("bob") { $0.timers = Timers(on: loop) }
        let identity = try RawPeer.makeIdentity()
        _ = try await bob.node.setTrust(.blocked, for: identity.id.description)
        let raw = try await RawPeer(to: bob, as: identity)
        try await raw.prove()
        try await raw.roundTrip()
        try await eventually("nothing is charged") { await bob.charged(to: raw.id) == 0 }
        let account = await bob.node.transport.accounts.account(of: raw.id)
        account.charge(EarshotLimits.strangersUnprocessedBytes - room)
        let id = InvitationID.random()
        try await raw.send(.invite(Invite(id: id, timeoutMilliseconds: 60_000, context: [])))
        try await eventually("the invitation is dealt with") {
            account.bytes == EarshotLimits.strangersUnprocessedBytes - room + EarshotLimits.blockedAnswerCharge
        }
        #expect(account.hasRoom(isMember: false) == isRead)
        await loop.advanceTime(by: .milliseconds(EarshotLimits.blockedAnswerMilliseconds.upperBound))
        let answer = try await raw.next { if case .inviteAnswer(let answer) = $0 { answer } else { nil } }
        #expect(answer == InviteAnswer(id: id, decision: .declined))
        try await eventually("there is room again") { account.bytes == EarshotLimits.strangersUnprocessedBytes - room }
        account.giveBack(EarshotLimits.strangersUnprocessedBytes - room)
        await raw.close()
        await bob.stop()
        await loop.end()
    }
}
