import EarshotWire
import Foundation
import OrderedCollections
import Testing

@testable import Earshot
@testable import EarshotCore

extension StoreSchema {
    /// The downgrade that removes groups.
    static let undoingGroups =
        "DROP TABLE group_records; DROP TABLE groups; ALTER TABLE messages DROP COLUMN group_id; "
        + "ALTER TABLE messages DROP COLUMN group_name; ALTER TABLE outbox DROP COLUMN group_id; "
        + "ALTER TABLE resources DROP COLUMN group_id; ALTER TABLE resources DROP COLUMN group_name; "
        + "ALTER TABLE resources DROP COLUMN share_id; "
    /// The downgrade that also removes the uniqueness of a peer's session and the note of decided peers from the schema.
    static let undoingSessionsByPeer = undoingGroups + "DROP INDEX members_by_peer; ALTER TABLE peers DROP COLUMN decided; "
}

/// A peer has one session, in memory and on disk.
@Suite(.timeLimit(.minutes(1))) struct NodeSessionTests {
    private func proven(_ node: TestNode, as identity: Identity? = nil) async throws -> RawPeer {
        let raw = try await RawPeer(to: node, as: identity)
        try await raw.prove()
        try await raw.roundTrip()
        return raw
    }

    /// Creates an identity whose id is lower or higher than the node's.
    private func identity(lowerThan node: TestNode, _ isLower: Bool) throws -> Identity {
        while true {
            let identity = try RawPeer.makeIdentity()
            if (identity.id < node.node.id) == isLower { return identity }
        }
    }

    private func invite(_ bob: TestNode, _ raw: RawPeer) async throws -> (Invitation, Invite) {
        let sent = try await bob.node.invite(raw.id.description, context: [], timeout: .seconds(60))
        return (sent, try await raw.next { if case .invite(let invite) = $0 { invite } else { nil } })
    }

    private func stored(_ bob: TestNode) async throws -> [SessionID] {
        try await Store(directory: bob.directory).load().sessions.map(\.id)
    }

    /// Crossing invitations result in one session, however many frames are in one write, and leaving it leaves nothing behind.
    @Test(arguments: [true, false], [0, 1, 2]) func whatCrossesComesToOne(isLower: Bool, order: Int) async throws {
        let bob = try await TestNode("bob")
        let raw = try await self.proven(bob, as: try self.identity(lowerThan: bob, isLower))
        let (sent, invite) = try await self.invite(bob, raw)
        #expect(invite.id == sent.id)
        let session = SessionID.random()
        let theirs = Frame.invite(Invite(id: .random(), timeoutMilliseconds: 60_000, context: []))
        switch order {
        case 0: try await raw.send(theirs, .sessionResume(session))
        case 1: try await raw.send(.sessionResume(session), theirs)
        default: try await raw.send(theirs, .sessionResume(session), .sessionResume(.random()), .sessionResume(session))
        }
        let decided = try await bob.node.outcome(of: sent.id)
        #expect(decided.state == .accepted)
        try await eventually("all is decided") {
            await bob.node.isSettled
        }
        try await raw.roundTrip()
        let ids = await bob.node.sessions().map(\.id)
        #expect(ids == decided.sessionID.map { [$0] })
        await bob.stop()
        #expect(try await self.stored(bob) == ids)
        let again = try await TestNode("bob", in: bob.state)
        #expect(await again.node.sessions().map(\.id) == ids)
        try await again.node.leave(try #require(ids.first))
        await #expect(throws: EarshotError.self) { try await again.node.leave(try #require(ids.first)) }
        await again.stop()
        #expect(try await self.stored(bob) == [])
        await raw.close()
    }

    /// The other way to end a session: everything of that peer is deleted, including data that is only on disk.
    @Test(arguments: [Trust.unknown, .blocked]) func takingTrustBackLeavesNoSession(trust: Trust) async throws {
        let bob = try await TestNode("bob")
        let raw = try await self.proven(bob)
        let id = raw.id
        // An earlier release may have left a session that exists only on disk.
        _ = try await bob.node.setTrust(.trusted, for: id.description)
        try await bob.node.store.apply([.putSession(StoredSession(id: .random(), members: [bob.node.id, id], createdAt: Date()))])
        _ = try await bob.node.setTrust(trust, for: id.description)
        await bob.stop()
        #expect(try await self.stored(bob) == [])
        await raw.close()
    }

    @Test func anotherPeersSessionIsRefused() async throws {
        let bob = try await TestNode("bob")
        let (first, second) = (try await self.proven(bob), try await self.proven(bob))
        let session = SessionID.random()
        let (one, _) = try await self.invite(bob, first)
        try await first.send(.inviteAnswer(InviteAnswer(id: one.id, decision: .accepted(session))))
        #expect(try await bob.node.outcome(of: one.id).sessionID == session)
        let (other, _) = try await self.invite(bob, second)
        try await second.send(.inviteAnswer(InviteAnswer(id: other.id, decision: .accepted(session))))
        let refused = try await bob.node.outcome(of: other.id)
        #expect(refused.state == .failed && refused.error == .protocolViolation)
        #expect(try await second.next { if case .sessionEnd(let id) = $0 { id } else { nil } } == session)
        // Nor by resuming the session.
        let (third, _) = try await self.invite(bob, second)
        try await second.send(.sessionResume(session))
        #expect(try await bob.node.outcome(of: third.id).state == .failed)
        #expect(await bob.node.sessions().flatMap(\.members).map(\.peerID) == [first.id])
        await bob.stop()
        let sessions = try await Store(directory: bob.directory).load().sessions
        #expect(sessions.map(\.members) == [[bob.node.id, first.id]])
        await first.close()
        await second.close()
    }

    /// The acceptance and the session's end in one write leave nothing behind, and the invitation names no ended session.
    @Test func whatEndsAtOnceLeavesNothing() async throws {
        let bob = try await TestNode("bob")
        let raw = try await self.proven(bob)
        let (sent, _) = try await self.invite(bob, raw)
        let session = SessionID.random()
        try await raw.send(.inviteAnswer(InviteAnswer(id: sent.id, decision: .accepted(session))), .sessionEnd(session))
        let decided = try await bob.node.outcome(of: sent.id)
        #expect(decided.state == .failed && decided.sessionID == nil)
        #expect(await bob.node.sessions().isEmpty)
        await bob.stop()
        #expect(try await self.stored(bob) == [])
        await raw.close()
    }

    // MARK: The schema

    private func session(_ id: SessionID = .random(), with peer: UInt8, at time: Double = 0) -> StoredSession {
        StoredSession(id: id, members: [peerID(100), peerID(peer)], createdAt: Date(timeIntervalSince1970: time))
    }

    @Test func theStoreKeepsOneAPeer() async throws {
        let directory = try StateDirectory()
        let store = try Store(directory: directory.path)
        let (first, second) = (self.session(with: 1), self.session(with: 1))
        try await store.apply([.putSession(first), .putSession(second), .putSession(second)])
        #expect(try await store.load().sessions == [second])
        // The id of another peer's session is refused, and that session stays.
        await #expect(throws: EarshotError.self) { try await store.apply([.putSession(self.session(second.id, with: 2))]) }
        #expect(try await store.load().sessions == [second])
        // No second session can be written in any other way.
        let third = self.session(with: 2)
        try await store.apply([.putSession(third)])
        await #expect(throws: SQLiteError.self) {
            try await store.sql("UPDATE members SET peer_id = (SELECT max(peer_id) FROM members WHERE place = 1)")
        }
        #expect(try await store.load().sessions.count == 2)
        try await store.apply([.removeSession(with: peerID(1))])
        #expect(try await store.load().sessions == [third])
    }

    @Test func ofSeveralTheLatestIsTakenOver() async throws {
        let directory = try StateDirectory()
        let kept = [self.session(with: 1, at: 3), self.session(with: 2, at: 1)].sorted { $0.createdAt < $1.createdAt }
        do {
            let store = try Store(directory: directory.path)
            try await store.sql(StoreSchema.undoingSessionsByPeer + "PRAGMA user_version = 6")
            for session in kept + [self.session(with: 1, at: 1), self.session(with: 1, at: 2)] { try await store.insert(session) }
        }
        #expect(try await Store(directory: directory.path).load().sessions == kept)
    }
}

extension Node {
    /// Whether no decision is pending or being written.
    fileprivate var isSettled: Bool { self.core.decisions.count == 0 && self.core.invitations(all: false).isEmpty }
}

extension Store {
    /// Inserts a session like an earlier release.
    fileprivate func insert(_ session: StoredSession) throws {
        try self.database.run(
            "INSERT INTO sessions (id, created_at) VALUES (?, ?)",
            [.blob(session.id.bytes), .integer(session.createdAt.milliseconds)])
        for (place, member) in session.members.enumerated() {
            try self.database.run(
                "INSERT INTO members (session_id, place, peer_id) VALUES (?, ?, ?)",
                [.blob(session.id.bytes), .integer(Int64(place)), .blob(member.bytes)])
        }
    }
}
