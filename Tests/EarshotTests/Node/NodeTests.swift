import EarshotWire
import Foundation
import NIOCore
import Testing

@testable import Earshot

@Suite struct InvitationTests {
    @Test func acceptingMakesASessionOnBothSides() async throws {
        let (alice, bob) = try await pair(inSession: false)
        let sent = try await alice.node.invite("bob", context: Array("tea?".utf8), timeout: .seconds(60))
        #expect(sent.state == .pending)
        let received = try await bob.invitation()
        #expect(received.context == Array("tea?".utf8))
        #expect(received.peerID == alice.node.id)
        let answered = try await bob.node.respond(to: received.id, .accept, always: false)
        #expect(answered.state == .accepted)
        let decided = try await alice.node.outcome(of: sent.id)
        #expect(decided.state == .accepted)
        #expect(decided.sessionID == answered.sessionID)
        try await bob.connected(to: alice)
        #expect(await alice.node.sessions().map(\.id) == bob.node.sessions().map(\.id))
        #expect(await bob.node.peers().first?.trust == .unknown)
        await alice.stop()
        await bob.stop()
    }

    @Test func rejectingIsDeclined() async throws {
        let (alice, bob) = try await pair(inSession: false)
        let sent = try await alice.node.invite("bob", context: [], timeout: .seconds(60))
        let received = try await bob.invitation()
        _ = try await bob.node.respond(to: received.id, .reject, always: false)
        #expect(try await alice.node.outcome(of: sent.id).state == .declined)
        #expect(await alice.node.sessions().isEmpty)
        await alice.stop()
        await bob.stop()
    }

    @Test func blockingIsDeclinedAndStaysSo() async throws {
        let (alice, bob) = try await pair(inSession: false)
        let sent = try await alice.node.invite("bob", context: [], timeout: .seconds(60))
        let received = try await bob.invitation()
        _ = try await bob.node.respond(to: received.id, .block, always: false)
        #expect(try await alice.node.outcome(of: sent.id).state == .declined)
        let last = try await bob.node.peer("alice")
        #expect(last.trust == .blocked)
        let again = try await alice.node.invite("bob", context: [], timeout: .seconds(60))
        #expect(try await alice.node.outcome(of: again.id).state == .declined)
        #expect(await bob.node.invitations(all: false).isEmpty)
        await alice.stop()
        await bob.stop()
    }

    @Test func withdrawingReachesTheInvitee() async throws {
        let (alice, bob) = try await pair(inSession: false)
        let sent = try await alice.node.invite("bob", context: [], timeout: .seconds(60))
        _ = try await bob.invitation()
        _ = try await alice.node.withdraw(sent.id)
        let resolved = try await bob.event { if case .invitationResolved(let invitation) = $0 { invitation } else { nil } }
        #expect(resolved.state == .cancelled)
        await alice.stop()
        await bob.stop()
    }

    @Test func timingOutReachesTheInvitee() async throws {
        let (alice, bob) = try await pair(inSession: false)
        let sent = try await alice.node.invite("bob", context: [], timeout: .milliseconds(400))
        #expect(try await alice.node.outcome(of: sent.id).state == .timedOut)
        if await !bob.node.invitations(all: true).isEmpty {
            let resolved = try await bob.event { if case .invitationResolved(let invitation) = $0 { invitation } else { nil } }
            #expect(resolved.state == .timedOut)
        }
        await alice.stop()
        await bob.stop()
    }

    @Test func crossingInvitationsBecomeOneSession() async throws {
        let (alice, bob) = try await pair(inSession: false)
        async let fromAlice = alice.node.invite("bob", context: [], timeout: .seconds(60))
        async let fromBob = bob.node.invite("alice", context: [], timeout: .seconds(60))
        let (one, other) = try await (fromAlice, fromBob)
        let (mine, theirs) = try await (alice.node.outcome(of: one.id), bob.node.outcome(of: other.id))
        #expect(mine.state == .accepted)
        #expect(theirs.state == .accepted)
        #expect(mine.sessionID == theirs.sessionID)
        await alice.stop()
        await bob.stop()
    }

    @Test func aTrustedPeerIsAcceptedAndInvitedBySending() async throws {
        let (alice, bob) = try await pair(inSession: false)
        _ = try await alice.node.setTrust(.trusted, for: bob.node.id.description)
        _ = try await bob.node.setTrust(.trusted, for: alice.node.id.description)
        let sent = try await alice.send("hello", to: bob)
        #expect(sent.recipients.map(\.status) == [.delivered])
        #expect(try await bob.inbox() == ["hello"])
        await alice.stop()
        await bob.stop()
    }

    @Test func leavingEndsTheSessionOnBothSides() async throws {
        let (alice, bob) = try await pair()
        let session = try #require(await alice.node.sessions().first)
        try await alice.node.leave(session.id)
        let ended = try await bob.event { kind -> Session? in
            if case .sessionChanged(let session, ended: true) = kind { session } else { nil }
        }
        #expect(ended.id == session.id)
        #expect(ended.members.map(\.peerID) == [alice.node.id], "a reader learns whose session it was")
        #expect(ended.members.map(\.state) == [.notConnected])
        await #expect(throws: EarshotError.self) { try await bob.send("x", to: alice) }
        await alice.stop()
        await bob.stop()
    }
}

@Suite struct MessageTests {
    @Test func manyArriveOnceAndInOrder() async throws {
        let (alice, bob) = try await pair()
        for index in 0..<50 {
            let sent = try await alice.send("\(index)", to: bob)
            #expect(sent.recipients.map(\.status) == [.delivered])
        }
        #expect(try await bob.inbox() == (0..<50).map(String.init))
        await alice.stop()
        await bob.stop()
    }

    @Test func aRepeatedIDIsDeliveredOnce() async throws {
        let (alice, bob) = try await pair()
        let id = MessageID.random()
        _ = try await alice.send("once", to: bob, id: id)
        _ = try await alice.send("once", to: bob, id: id)
        #expect(try await bob.inbox() == ["once"])
        await #expect(throws: EarshotError.self) { try await alice.send("another", to: bob, id: id) }
        await alice.stop()
        await bob.stop()
    }

    @Test func aRestartOfEitherSideKeepsTheSession() async throws {
        let (alice, bob) = try await pair()
        _ = try await alice.send("before", to: bob)
        await bob.stop()
        let again = try await TestNode("bob", in: bob.state)
        #expect(again.node.id == bob.node.id)
        alice.sees(again)
        again.sees(alice)
        #expect(try await alice.send("after", to: again).recipients.map(\.status) == [.delivered])
        #expect(try await again.inbox() == ["before", "after"])
        await alice.stop()
        let alice2 = try await TestNode("alice", in: alice.state)
        alice2.sees(again)
        again.sees(alice2)
        #expect(try await alice2.send("and again", to: again).recipients.map(\.status) == [.delivered])
        await alice2.stop()
        await again.stop()
    }

    @Test func withoutAConnectionItIsNotSent() async throws {
        let (alice, bob) = try await pair()
        await bob.stop()
        try await eventually("alice has noticed") { await alice.node.connection(to: bob.node.id) == nil }
        let sent = try await alice.send("lost", to: bob, timeout: .milliseconds(200))
        #expect(sent.recipients.map(\.status) == [.failed] && sent.recipients.map(\.error) == [.notSent])
        await alice.stop()
    }
}

@Suite struct ResourceTests {
    @Test(arguments: [0, 1, 300_000, 9_000_000]) func aFileArrivesWhole(size: Int) async throws {
        let (alice, bob) = try await pair()
        let path = alice.directory + "/data.bin"
        let content = Data((0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31) })
        try content.write(to: URL(fileURLWithPath: path))
        let rows = try await alice.node.sendResource(to: ["bob"], path: path)
        let sent = try await alice.event { if case .resourceFinished(let row) = $0 { row } else { nil } }
        #expect(sent.id == rows.first?.id)
        #expect(sent.state == .completed, "\(sent.errorMessage ?? "")")
        let received = try await bob.node.resource(sent.id)
        #expect(received.state == .completed)
        #expect(received.digest == sent.digest)
        let reader = try await bob.node.resourceContent(sent.id)
        var got = Data()
        while true {
            let piece = try await reader.read(at: UInt64(got.count), count: 100_000)
            guard piece.readableBytes > 0 else { break }
            got.append(contentsOf: piece.readableBytesView)
        }
        #expect(got == content)
        try await bob.node.dropContent(sent.id)
        #expect(try await bob.node.resource(sent.id).inSpool == false)
        await alice.stop()
        await bob.stop()
    }

    @Test func aStreamedBodyOfTheWrongLengthFails() async throws {
        let (alice, bob) = try await pair()
        let body = AsyncThrowingStream<ByteBuffer, any Error> {
            $0.yield(ByteBuffer(string: "short")); $0.finish()
        }
        await #expect(throws: EarshotError.self) {
            try await alice.node.sendResource(to: ["bob"], name: "x", size: 10, body: body)
        }
        let good = AsyncThrowingStream<ByteBuffer, any Error> {
            $0.yield(ByteBuffer(string: "short")); $0.finish()
        }
        let rows = try await alice.node.sendResource(to: ["bob"], name: "x", size: 5, body: good)
        #expect(rows.map(\.state) == [.completed])
        await alice.stop()
        await bob.stop()
    }
}
