import EarshotWire
import NIOCore
import OrderedCollections
import Simulation
import Testing

@testable import EarshotCore
@testable import EarshotWire

/// The limits of groups, each tested at its edge.
@Suite struct GroupLimitTests {
    /// A seat of a peer that never connects, signed by the group's creator, peer 0.
    private func seat(_ number: Int, in group: GroupID, number seatNumber: UInt32 = 1) throws -> GroupRecord {
        let creator = GroupBench.key(0).publicKey
        let key: [UInt8] = [0x31, UInt8(number >> 8), UInt8(number & 0xFF)]
        var seat = GroupSeat(
            publicKey: key, scheme: .ed25519, name: try DisplayName("x\(number)"), number: seatNumber, joinedAtMilliseconds: 1,
            voucher: PeerID(subjectPublicKeyInfo: creator), voucherNumber: 1, warrant: GroupSeat.Warrant(.creator))
        seat.signature = ToySignature.sign(try seat.signedBytes(as: .peer, in: group), by: key)
        seat.warrant.signature = ToySignature.sign(try seat.signedBytes(as: .creator, in: group), by: creator)
        return .seat(seat)
    }

    /// Makes a group of two peers. Returns the connection of peer 1 to peer 0.
    private func pair() throws -> (bench: GroupBench, id: GroupID, link: LinkID) {
        var bench = try GroupBench(2)
        try bench.connectAll()
        let id = try bench.create(0)
        try bench.letIn(1, by: 0, to: id)
        return (bench, id, try bench.link(1, 0))
    }

    @Test func aPeersRecordsAreCheckedAFewAtATime() throws {
        var (bench, id, link) = try self.pair()
        bench.peers[1].areSignaturesHeld = true
        let before = bench.peers[1].checks
        for number in 0...EarshotLimits.groupRecordsPerTurn {
            bench.peers[1].frame(.group(.record(try self.seat(number, in: id), of: id)), on: link)
        }
        // The first check has begun alone, and the other records have come behind it.
        #expect(bench.peers[1].checks == before + 1)
        bench.peers[1].releaseSignature()
        #expect(bench.peers[1].checks == before + 1 + EarshotLimits.groupRecordsPerTurn)
    }

    @Test func aPeersRecordsAreCheckedAsManyASecondAsMayBe() throws {
        var (bench, id, link) = try self.pair()
        bench.advance(.seconds(10))
        let before = bench.peers[1].checks
        let count = EarshotLimits.groupRecordsPerSecond + 3
        // All seats are of one peer, so that the group does not fill up with members.
        for number in 1...count {
            let record = try self.seat(1, in: id, number: UInt32(number))
            bench.peers[1].frame(.group(.record(record, of: id)), on: link)
        }
        #expect(bench.peers[1].checks == before + EarshotLimits.groupRecordsPerSecond)
        #expect(bench.peers[1].core.records[bench.ids[0]]?.groups.holds.count == 3)
        bench.peers[1].advance(.seconds(1))
        #expect(bench.peers[1].checks == before + count, "the others have waited")
    }

    @Test func moreOfAPeersRecordsThanAGroupHasDoNotWait() throws {
        var (bench, id, link) = try self.pair()
        bench.peers[1].areSignaturesHeld = true
        for number in 0..<(EarshotLimits.groupRecordsWaiting + 10) {
            bench.peers[1].frame(.group(.record(try self.seat(number, in: id), of: id)), on: link)
        }
        #expect(bench.peers[1].core.records[bench.ids[0]]?.groups.holds.count == EarshotLimits.groupRecordsWaiting)
        let held = bench.peers[1].holds.count
        bench.peers[1].lose(link)
        #expect(bench.peers[1].holds.count == held - EarshotLimits.groupRecordsWaiting, "what waits is not charged any more")
        bench.peers[1].releaseSignatures()
        #expect(bench.peers[1].holds.isEmpty)
    }

    @Test func onlySoManyIndexesAMinuteAreAnswered() throws {
        var (bench, id, link) = try self.pair()
        bench.advance(.seconds(120))
        _ = bench.peers[1].sent(on: link)
        func answered() -> Int {
            bench.peers[1].frame(.group(.index(id, [])), on: link)
            return bench.peers[1].sent(on: link).count
        }
        for _ in 0..<EarshotLimits.groupExchanges { #expect(answered() > 0) }
        #expect(answered() == 0)
        bench.peers[1].advance(.seconds(60))
        _ = bench.peers[1].sent(on: link)
        #expect(answered() > 0)
    }

    @Test func aPeerIsAskedSoOftenWhateverItNames() throws {
        var (bench, id, link) = try self.pair()
        bench.advance(.seconds(120))
        _ = bench.peers[1].sent(on: link)
        /// Returns the number of questions after one frame with that many names, all with different digests.
        func asked(_ count: Int = 1) -> Int {
            let names = (0..<count).map { _ in GroupName(group: id, digest: .random()) }
            bench.peers[1].frame(.group(.names(names)), on: link)
            return questions()
        }
        func questions() -> Int {
            bench.peers[1].sent(on: link).count { if case .group(.index(id, _)) = $0 { true } else { false } }
        }
        #expect(asked(WireLimits.groupsPerFrame) == 1, "once a frame")
        for _ in 1..<EarshotLimits.groupExchanges { #expect(asked() == 1) }
        #expect(asked() == 0)
        bench.peers[1].advance(EarshotLimits.groupQuestionInterval)
        #expect(questions() == 1, "it is asked later")
        #expect(asked() == 0)
    }

    @Test func aMachineIsInSoManyGroups() throws {
        var bench = try GroupBench(2)
        try bench.connectAll()
        for number in 0..<EarshotLimits.groups { _ = try bench.create(1, name: "group \(number)") }
        #expect(bench.ask(1, .create(name: "more", isClosed: false, isUnprotected: false))?.error == .noSpace)
        _ = try bench.create(0)
        bench.ask(0, .invite("team", peers: ["peer1"], context: [], timeout: nil))
        #expect(bench.peers[0].core.invitations(all: true).last?.error == .busy)
        bench.ask(1, .leave("group 3"))
        _ = try bench.create(1, name: "another")
    }

    @Test func noMoreAreInvitedThanThereIsRoomFor() throws {
        var (bench, id, link) = try self.pair()
        for number in 2..<EarshotLimits.groupMembers {
            bench.peers[1].frame(.group(.record(try self.seat(number, in: id), of: id)), on: link)
            bench.peers[1].advance(.milliseconds(20))
        }
        #expect(bench.group(id, at: 1)?.members.count == EarshotLimits.groupMembers)
        let other = peerID(9)
        try bench.peers[1].see(other)
        let answer = bench.ask(1, .invite("team", peers: [other.description], context: [], timeout: nil))
        #expect(answer?.error == .noSpace)
        bench.peers[1].frame(.group(.record(try self.seat(999, in: id), of: id)), on: link)
        #expect(bench.group(id, at: 1)?.members.count { $0.state == .full } == 1)
    }

    @Test func membersAreDialledAFewAtATime() throws {
        var (bench, id, link) = try self.pair()
        let count = 3 * EarshotLimits.groupDials
        for number in 2..<(2 + count) {
            let record = try self.seat(number, in: id)
            guard case .seat(let seat) = record else { continue }
            try bench.peers[1].see(seat.peer, name: "x\(number)", at: "10.77.0.\(number)")
            bench.peers[1].frame(.group(.record(record, of: id)), on: link)
        }
        let before = bench.peers[1].dials.count
        #expect(before == 0, "not at once")
        bench.peers[1].advance(EarshotLimits.groupDialDelay + EarshotLimits.higherPeerDialDelay)
        #expect(bench.peers[1].dials.count == EarshotLimits.groupDials)
        // Each dial fails in turn, and the next members are dialled.
        for dialled in bench.peers[1].dials { bench.peers[1].handle(.dial(dialled, .ended(EarshotError(.unavailable, "gone")))) }
        bench.peers[1].advance(EarshotLimits.groupDialDelay + EarshotLimits.higherPeerDialDelay)
        #expect(Set(bench.peers[1].dials).count > EarshotLimits.groupDials)
    }

    @Test func leavesOfSeatsThatAreNotHeld() {
        let group = GroupID(high: 1, low: 1)
        var ties = GroupTies()
        func leaves(_ numbers: UInt32...) -> [Bool] { numbers.map { ties.mayLeave(group, $0) } }
        #expect(leaves(2, 2, 1) == [true, false, false], "an older one")
        for number in 1..<EarshotLimits.groupRecords { #expect(leaves(UInt32(number + 2)) == [true]) }
        #expect(leaves(.max) == [false])
        ties.renew()
        #expect(leaves(1) == [true], "another connection")
    }
}
