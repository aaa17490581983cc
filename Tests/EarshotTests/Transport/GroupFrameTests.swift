import EarshotWire
import NIOCore
import NIOEmbedded
import Testing

@testable import Earshot

/// The frames of groups on a connection: the permitted senders, the cost of waiting frames, and their number per turn.
@Suite struct GroupFrameTests {
    private let group = GroupID(high: 1, low: 2)

    private func removal(_ number: UInt32) -> Frame {
        let peer = PeerID(subjectPublicKeyInfo: [1])
        return .group(.record(.removal(GroupRemoval(peer: peer, number: number, signature: [1])), of: self.group))
    }

    /// Returns frames with all fields at their maximum length.
    private func longest() throws -> [Frame] {
        let key = [UInt8](repeating: 1, count: WireLimits.publicKey)
        let signature = [UInt8](repeating: 2, count: WireLimits.signature)
        let name = try DisplayName(String(repeating: "a", count: DisplayName.byteLimit))
        let charter = try GroupCharter(
            nonce: [UInt8](repeating: 3, count: WireLimits.groupNonce), creatorKey: key, creatorScheme: .rsaPSSSHA256,
            createdAtMilliseconds: 1)
        let terms = GroupTerms(number: 1, name: name, signature: signature)
        let seat = GroupSeat(
            publicKey: key, scheme: .rsaPSSSHA256, name: name, number: 1, joinedAtMilliseconds: 1, voucher: charter.creator,
            voucherNumber: 1, signature: signature, warrant: GroupSeat.Warrant(.voucher, signature: signature))
        var own = seat
        own.warrant.signature = []
        let leave = GroupLeave(publicKey: key, scheme: .rsaPSSSHA256, number: 1, signature: signature)
        let invite = GroupInvite(
            id: .random(), timeoutMilliseconds: 1, charter: charter, terms: terms, members: 1, voucherNumber: 1, seatNumber: 1,
            context: [UInt8](repeating: 4, count: WireLimits.invitationContext))
        let named = GroupName(group: self.group, digest: .digest(of: []))
        let records: [GroupRecord] = [
            .charter(charter), .terms(terms), .seat(seat), .leave(leave),
            .removal(GroupRemoval(peer: seat.peer, number: 1, signature: signature)),
        ]
        let frames: [GroupFrame] = [
            .invite(invite), .inviteAnswer(GroupInviteAnswer(id: .random(), decision: .accepted(own))),
            .inviteWithdraw(InviteWithdraw(id: .random(), reason: .withdrawn)),
            .names([GroupName](repeating: named, count: WireLimits.groupsPerFrame)),
            .index(self.group, [GroupRecordHash](repeating: named.digest, count: WireLimits.groupIndex)),
        ]
        return frames.map { .group($0) } + records.map { .group(.record($0, of: self.group)) }
    }

    @Test(arguments: [true, false], [true, false]) func theyReachTheNodeWhereBothHellosSaySo(_ theirs: Bool, _ ours: Bool) throws {
        let bench = try HandlerBench(extensions: ours ? [.streamReroute, .groups] : [.streamReroute])
        try bench.prove(extensions: theirs ? [.groups] : [])
        _ = try bench.received()
        try bench.send([self.removal(1)])
        bench.channel.embeddedEventLoop.run()
        #expect(bench.handedOn.flatMap(\.frames) == (theirs && ours ? [self.removal(1)] : []))
        #expect(bench.isClosing == !(theirs && ours))
        let refusals = try bench.received().compactMap { if case .refusal(let refusal) = $0 { refusal.code } else { nil } }
        #expect(refusals == (theirs && ours ? [] : [.protocolViolation]))
    }

    @Test func theyAreWrittenWhereBothHellosSaySo() throws {
        for knows in [true, false] {
            let bench = try HandlerBench(extensions: [.groups])
            try bench.prove(extensions: knows ? [.groups] : [])
            _ = try bench.received()
            guard case .proven(let connection)? = bench.events.value.first else {
                Issue.record("the node was not told")
                return
            }
            connection.send([self.removal(1), .ping(7)])
            bench.channel.embeddedEventLoop.run()
            #expect(try bench.received() == (knows ? [self.removal(1), .ping(7)] : [.ping(7)]))
        }
    }

    /// A peer is charged for the whole content of its frame: a record of 4 KiB costs more than a `ping`.
    @Test func theyAreChargedForWhatTheyHold() throws {
        for frame in try self.longest() {
            var bytes = ByteBuffer()
            try FrameEncoder.encode(frame, into: &bytes)
            #expect(frame.weight >= bytes.readableBytes, "\(frame.type)")
            #expect(frame.weight <= bytes.readableBytes + 512, "\(frame.type)")
        }
        let bench = try HandlerBench(extensions: [.groups])
        try bench.prove(extensions: [.groups])
        let record = try #require(try self.longest().last { $0.weight > 4096 })
        try bench.send([record])
        bench.channel.embeddedEventLoop.run()
        #expect(bench.accounts.bytes == record.weight)
        bench.endTurn()
        #expect(bench.accounts.bytes == 0)
    }

    /// Each record may require two signature checks. A peer with a session has 16 records per turn, another one 2.
    @Test func recordsOfATurn() throws {
        let bench = try HandlerBench(extensions: [.groups])
        try bench.prove(extensions: [.groups])
        try bench.send((1...40).map { self.removal($0) })
        for count in [2, 16, 16, 6] {
            bench.channel.embeddedEventLoop.run()
            #expect(bench.handedOn.map(\.frames.count) == [count])
            bench.endTurn(isMember: true)
        }
        #expect(try self.longest().allSatisfy { $0.work >= 16 })
    }

    /// The extensions in a node's hello.
    @Test func theHelloOfAControlConnectionKnowsThem() async throws {
        #expect(ConnectionHandler.Purpose.control.helloExtensions.contains(.groups))
        let bob = try await TestNode("bob")
        let raw = try await RawPeer(to: bob)
        try await raw.send(.hello(try raw.hello()), preamble: true)
        let hello = try await raw.next { if case .hello(let hello) = $0 { hello } else { nil } }
        #expect(hello.extensions.contains(.groups))
    }
}
