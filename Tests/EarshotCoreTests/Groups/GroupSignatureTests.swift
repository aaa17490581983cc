import EarshotWire
import OrderedCollections
import Testing

@testable import EarshotCore
@testable import EarshotWire

/// Invalid signatures: the record is ignored, the invitation is declined, the answer is void, and the connection stays.
@Suite struct GroupSignatureTests {
    private static func removal(of peer: PeerID, _ number: UInt32 = 1) -> GroupRecord {
        .removal(GroupRemoval(peer: peer, number: number, signature: [1]))
    }

    @Test func aForgedRecordIsIgnored() throws {
        var (bench, id) = try GroupBench.group(of: 2)
        let link = try bench.link(0, 1)
        bench.peers[0].frame(.group(.record(Self.removal(of: bench.ids[1]), of: id)), on: link)
        #expect(bench.peers[0].closed[link] == nil)
        #expect(bench.members(id, at: 0) == [0, 1] && bench.attached(id, at: 0) == [0, 1])
        #expect(bench.peers[0].holds.isEmpty)
        let call = bench.send("x", by: 1, to: id)
        #expect(bench.status(of: call, at: 1, for: 0) == .delivered)
    }

    /// Two versions that disagree about one signature do not ask each other for the record repeatedly.
    @Test func whatIsNotTakenIsNotAskedForAgain() throws {
        var (bench, id) = try GroupBench.group(of: 2)
        bench.advance(.seconds(60))
        let link = try bench.link(0, 1)
        let digest = GroupRecordHash.random()
        func answer() -> Int {
            bench.peers[0].frame(.group(.record(Self.removal(of: bench.ids[1]), of: id)), on: link)
            bench.peers[0].frame(.group(.names([GroupName(group: id, digest: digest)])), on: link)
            return bench.peers[0].sent(on: link).count { if case .group(.index(id, _)) = $0 { true } else { false } }
        }
        _ = bench.peers[0].sent(on: link)
        #expect(answer() == 1)
        #expect(answer() == 0)
        bench.ask(0, .rename("team", to: "other"))
        _ = bench.peers[0].sent(on: link)
        #expect(answer() == 1, "it holds something else now")
    }

    @Test func invalidSignaturesDelayTheNextOnes() throws {
        var (bench, id) = try GroupBench.group(of: 2)
        bench.advance(.seconds(60))
        let link = try bench.link(0, 1)
        let before = bench.peers[0].checks
        func send(_ count: Int) {
            for number in 1...count {
                bench.peers[0].frame(.group(.record(Self.removal(of: bench.ids[1], UInt32(number)), of: id)), on: link)
            }
        }
        send(EarshotLimits.groupInvalidSignatures)
        #expect(bench.peers[0].checks == before + EarshotLimits.groupInvalidSignatures)
        for number in 1...2 {
            send(1)
            #expect(bench.peers[0].checks == before + EarshotLimits.groupInvalidSignatures + number - 1)
            #expect(bench.peers[0].holds.count == 1, "what waits is charged to the peer")
            bench.peers[0].advance(EarshotLimits.groupInvalidSignatureInterval)
            #expect(bench.peers[0].checks == before + EarshotLimits.groupInvalidSignatures + number)
        }
        #expect(bench.peers[0].holds.isEmpty && bench.peers[0].closed[link] == nil)
        // A new connection does not restore the allowance.
        bench.disconnect(0, 1)
        try bench.connect(0, 1)
        let checked = bench.peers[0].checks
        bench.peers[0].frame(.group(.record(Self.removal(of: bench.ids[1], 9), of: id)), on: try bench.link(0, 1))
        #expect(bench.peers[0].checks == checked)
    }

    @Test func aForgedInvitationIsDeclined() throws {
        var bench = try GroupBench(2)
        try bench.connectAll()
        let id = try bench.create(0)
        let records = try #require(bench.peers[0].core.groups[id]?.records)
        var terms = records.terms
        terms.signature = [1]
        let link = try bench.link(1, 0)
        func invite(_ number: UInt64, _ terms: GroupTerms) -> [GroupInviteAnswer.Decision] {
            let invite = GroupInvite(
                id: InvitationID(high: 1, low: number), timeoutMilliseconds: 10_000, charter: records.charter, terms: terms, members: 1,
                voucherNumber: 1, seatNumber: 1, context: [])
            bench.peers[1].frame(.group(.invite(invite)), on: link)
            return bench.peers[1].sent(on: link).compactMap {
                if case .group(.inviteAnswer(let answer)) = $0 { answer.decision } else { nil }
            }
        }
        _ = bench.peers[1].sent(on: link)
        let limit = UInt64(EarshotLimits.groupInvalidSignatures)
        for number in 0..<limit { #expect(invite(number, terms) == [.declined]) }
        #expect(invite(limit, terms) == [.busy], "not checked")
        #expect(bench.peers[1].closed[link] == nil && bench.peers[1].holds.isEmpty)
        bench.peers[1].advance(EarshotLimits.groupInvalidSignatureInterval * Int(limit))
        #expect(invite(limit + 1, records.terms) == [] && bench.peers[1].pending.count == 1)
    }

    /// The signature is not the peer's, or the key is another one.
    @Test(arguments: [1, 2]) func aForgedAcceptanceIsVoid(key: Int) throws {
        var bench = try GroupBench(2)
        try bench.connectAll()
        let id = try bench.create(0)
        bench.peers[0].call(.group(.invite("team", peers: ["peer1"], context: [], timeout: nil)))
        let invitation = try #require(bench.peers[0].pending.first)
        let seat = GroupSeat(
            publicKey: GroupBench.key(key).publicKey, scheme: .ed25519, name: try DisplayName("peer1"), number: 1, joinedAtMilliseconds: 1,
            voucher: bench.ids[0], voucherNumber: 1, signature: [1], warrant: GroupSeat.Warrant(.voucher))
        let link = try bench.link(0, 1)
        _ = bench.peers[0].sent(on: link)
        bench.peers[0].frame(.group(.inviteAnswer(GroupInviteAnswer(id: invitation, decision: .accepted(seat)))), on: link)
        #expect(bench.peers[0].closed[link] == nil && bench.members(id, at: 0) == [0])
        #expect(try bench.peers[0].invitation(invitation).error == .protocolViolation)
        let withdrawal = InviteWithdraw(id: invitation, reason: .withdrawn)
        #expect(bench.peers[0].sent(on: link).contains(.group(.inviteWithdraw(withdrawal))), "the peer need not wait")
    }
}
