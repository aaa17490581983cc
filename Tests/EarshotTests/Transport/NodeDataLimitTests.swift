import EarshotWire
import Foundation
import NIOCore
import NIOEmbedded
import Testing

@testable import Earshot
@testable import EarshotCore

/// Data connections with a peer whose bytes the test controls. The peer has opened the control connection, so the node gives it tickets.
@Suite(.timeLimit(.minutes(1))) struct NodeDataLimitTests {
    private static let size = EarshotLimits.dataThreshold + 100

    /// A peer with frames from the test, in a session with a node, and the ticket for a resource that it has offered.
    private struct Begun {
        let bob: TestNode
        let raw: RawPeer
        let id: ResourceID
        let ticket: DataTicket

        func end() async {
            await self.raw.close()
            await self.bob.stop()
        }

        /// Opens a second connection, which is proven as a data connection.
        func dial(as identity: Identity? = nil, tls: Bool? = nil) async throws -> RawPeer {
            let data = try await RawPeer(to: self.bob, as: identity ?? self.raw.identity, tls: tls ?? (self.raw.transport == .tls))
            try await data.proveForData()
            return data
        }
    }

    private func begin(tls: Bool = true, configure: (inout Node.Configuration) -> Void = { _ in }) async throws -> Begun {
        let bob = try await TestNode("bob") {
            $0.fromUnknown = .accept
            $0.encryption = tls ? .required : .none
            configure(&$0)
        }
        let raw = try await RawPeer(to: bob, tls: tls)
        try await raw.prove()
        let session = try await raw.join()
        let id = ResourceID.random()
        try await raw.send(raw.offer("x", size: Self.size, in: session, id: id))
        let accept = try await self.accepted(raw)
        #expect((accept.offset, accept.limit) == (0, 0))
        return Begun(bob: bob, raw: raw, id: id, ticket: try await self.ticket(raw))
    }

    private func accepted(_ raw: RawPeer) async throws -> ResourceAccept {
        try await raw.next { if case .resource(.accept(let accept)) = $0 { accept } else { nil } }
    }

    private func ticket(_ raw: RawPeer) async throws -> DataTicket {
        try await raw.next { if case .dataTicket(let ticket) = $0 { ticket } else { nil } }
    }

    private func data(_ count: UInt64, end: Bool = false) -> [UInt8] {
        var buffer = ByteBuffer()
        if count > 0 {
            DataFrame.data(count: Int(count)).encode(into: &buffer)
            buffer.writeRepeatingByte(7, count: Int(count))
        }
        if end { DataFrame.end.encode(into: &buffer) }
        return Array(buffer.readableBytesView)
    }

    private func whole(end: Bool = true, beyond: UInt64 = 0) -> [UInt8] {
        let half = Self.size / 2
        return self.data(half) + self.data(Self.size - half + beyond, end: end)
    }

    private func finished(_ node: TestNode) async throws -> Resource {
        try await node.event { if case .resourceFinished(let row) = $0 { row } else { nil } }
    }

    private func expectNothingLeft(_ bob: TestNode) async throws {
        try await eventually("the spool is empty") { try await bob.node.spool.heldBytes() == 0 && bob.spoolNames() == [] }
        try await eventually("no data connection is left") { await bob.node.core.dataPathCount == 0 }
    }

    /// Sends the bytes, and checks that the transfer is confirmed and ends normally.
    private func complete(_ begun: Begun, over data: RawPeer) async throws {
        try await data.send(.dataAttach(begun.ticket.token))
        try await data.send(bytes: self.whole())
        let accept = try await self.accepted(begun.raw)
        #expect((accept.offset, accept.limit) == (Self.size, Self.size))
        let hash = try XXH3()
        hash.update(ByteBuffer(repeating: 7, count: Int(Self.size)))
        try await begun.raw.send(.resource(.end(ResourceEnd(id: begun.id, algorithm: .xxh3, digest: hash.digest()))))
        #expect(try await self.finished(begun.bob).state == .completed)
    }

    @Test(arguments: [true, false]) func aTokenOfAnotherPeersStillWorksForItsOwner(_ tls: Bool) async throws {
        let begun = try await self.begin(tls: tls)
        let thief = try await begun.dial(as: RawPeer.makeIdentity())
        try await thief.send(.dataAttach(begun.ticket.token))
        #expect(await thief.refusal() == .declined)
        let owner = try await begun.dial()
        try await self.complete(begun, over: owner)
        // The ticket has been used up.
        let again = try await begun.dial()
        try await again.send(.dataAttach(begun.ticket.token))
        #expect(await again.refusal() == .declined)
        await begun.end()
    }

    @Test(arguments: [true, false]) func dataBeforeItsToken(_ tls: Bool) async throws {
        let begun = try await self.begin(tls: tls)
        let data = try await begun.dial()
        try await data.send(bytes: self.data(100))
        #expect(await data.refusal() == .protocolViolation)
        let frames = try await begun.dial()
        try await frames.send(.sessionResume(.random()))
        #expect(await frames.refusal() == .protocolViolation)
        #expect(try await begun.bob.node.resource(begun.id).transferred == 0)
        // Neither attempt has affected the owner.
        try await self.complete(begun, over: try await begun.dial())
        await begun.end()
    }

    @Test func aTokenWorksOverTheControlConnectionsTransportAlone() async throws {
        let begun = try await self.begin(tls: false) { $0.encryption = .optional }
        let data = try await RawPeer(to: begun.bob, as: begun.raw.identity)
        var hello = try data.hello()
        hello.extensions = [.dataConnection]
        try await data.prove(hello: hello)
        try await data.send(.dataAttach(begun.ticket.token))
        #expect(await data.refusal() == .declined)
        await begun.end()
    }

    @Test(arguments: [true, false]) func moreThanWasDeclared(_ tls: Bool) async throws {
        let begun = try await self.begin(tls: tls)
        let data = try await begun.dial()
        try await data.send(.dataAttach(begun.ticket.token))
        try await data.send(bytes: self.whole(beyond: 1))
        let refusal = try await begun.raw.next { if case .resource(.refuse(let refuse)) = $0 { refuse } else { nil } }
        #expect(refusal.refusal.code == .tooLarge)
        #expect(try await self.finished(begun.bob).error == .tooLarge)
        while await data.next() != nil {}
        try await self.expectNothingLeft(begun.bob)
        await begun.end()
    }

    @Test(arguments: [true, false]) func lessThanWasDeclared(_ tls: Bool) async throws {
        let begun = try await self.begin(tls: tls)
        let data = try await begun.dial()
        try await data.send(.dataAttach(begun.ticket.token))
        try await data.send(bytes: self.data(1000, end: true))
        let refusal = try await begun.raw.next { if case .resource(.refuse(let refuse)) = $0 { refuse.refusal.code } else { nil } }
        #expect(refusal == .protocolViolation)
        #expect(try await self.finished(begun.bob).error == .protocolViolation)
        try await self.expectNothingLeft(begun.bob)
        await begun.end()
    }

    /// An attached data connection closes without a refusal, whatever the violation. The control connection reports the reason.
    @Test(arguments: [true, false], ["0000000059", "0040000159", "0000000080", "00000008100000000000000001", "000000015a00"])
    func whatIsNoData(_ tls: Bool, _ hex: String) async throws {
        let begun = try await self.begin(tls: tls)
        let data = try await begun.dial()
        try await data.send(.dataAttach(begun.ticket.token))
        let digits = Array(hex)
        try await data.send(bytes: stride(from: 0, to: digits.count, by: 2).compactMap { UInt8(String(digits[$0...$0 + 1]), radix: 16) })
        let refusal = try await begun.raw.next { if case .resource(.refuse(let refuse)) = $0 { refuse.refusal.code } else { nil } }
        #expect(refusal == .protocolViolation)
        #expect(await data.refusal() == nil)
        try await begun.raw.roundTrip()
        await begun.end()
    }

    /// Written bytes count, and another connection continues after them.
    @Test(arguments: [true, false]) func aLostDataConnection(_ tls: Bool) async throws {
        let begun = try await self.begin(tls: tls)
        let first = try await begun.dial()
        try await first.send(.dataAttach(begun.ticket.token))
        try await first.send(bytes: self.data(UInt64(EarshotLimits.dataBlock)))
        try await eventually("the bytes have come") {
            await begun.bob.writtenBytes(of: begun.id) == UInt64(EarshotLimits.dataBlock)
        }
        await first.close()
        let accept = try await self.accepted(begun.raw)
        // Few bytes remain, which are sent over the control connection.
        let offset = UInt64(EarshotLimits.dataBlock)
        #expect(accept.offset == offset)
        #expect(accept.limit == Self.size)
        let hash = try XXH3()
        hash.update(ByteBuffer(repeating: 7, count: Int(Self.size)))
        var at = offset
        while at < Self.size {
            let count = min(UInt64(WireLimits.chunkData), Self.size - at)
            let bytes = ByteBuffer(repeating: 7, count: Int(count))
            try await begun.raw.send(.resource(.chunk(ResourceChunk(id: begun.id, offset: at, data: bytes))))
            at += count
        }
        try await begun.raw.send(.resource(.end(ResourceEnd(id: begun.id, algorithm: .xxh3, digest: hash.digest()))))
        #expect(try await self.finished(begun.bob).state == .completed)
        await begun.end()
    }

    /// Repeatedly lost without a byte: no more data connections.
    @Test func neverAByte() async throws {
        let begun = try await self.begin()
        var ticket = begun.ticket
        for attempt in 1...EarshotLimits.dataFailures {
            let data = try await begun.dial()
            try await data.send(.dataAttach(ticket.token))
            await data.close()
            let accept = try await self.accepted(begun.raw)
            #expect(accept.offset == 0)
            guard attempt < EarshotLimits.dataFailures else {
                #expect(accept.limit == EarshotLimits.resourceWindow)
                break
            }
            #expect(accept.limit == 0)
            ticket = try await self.ticket(begun.raw)
        }
        await begun.end()
    }

    /// The peer cannot dial, and the node knows no address of the peer: chunks.
    @Test func nobodyCanDial() async throws {
        let begun = try await self.begin()
        let transfer = TransferID(begun.id)
        try await begun.raw.send(.dataUnavailable(transfer), .dataTicket(DataTicket(transfer: transfer, token: DataToken())))
        let accept = try await begun.raw.next { frame -> ResourceAccept? in
            if case .resource(.accept(let accept)) = frame { accept } else { nil }
        }
        #expect((accept.offset, accept.limit) == (0, EarshotLimits.resourceWindow))
        await begun.end()
    }

    /// The peer has its ticket, but does not dial: chunks, but not earlier.
    @Test func dataDialTime() async throws {
        let loop = NIOAsyncTestingEventLoop()
        let begun = try await self.begin { $0.timers = Timers(on: loop) }
        await loop.advanceTime(by: TimeAmount(EarshotLimits.dataDialTime) - .nanoseconds(1))
        try await begun.raw.roundTrip()
        #expect(await begun.bob.node.isOpeningData(TransferID(begun.id)))
        await loop.advanceTime(by: .nanoseconds(1))
        let accept = try await self.accepted(begun.raw)
        #expect((accept.offset, accept.limit) == (0, EarshotLimits.resourceWindow))
        await begun.end()
        await loop.end()
    }

    /// A ticket without a transfer does not make a peer dial.
    @Test func ticketsForNothing() async throws {
        let begun = try await self.begin()
        for _ in 0..<100 {
            try await begun.raw.send(
                .dataTicket(DataTicket(transfer: .random(), token: DataToken())), .dataUnavailable(.random()),
                .dataTicket(DataTicket(transfer: TransferID(begun.id), token: DataToken())))
        }
        try await begun.raw.roundTrip()
        #expect(await begun.bob.node.core.dataPathCount == 1)
        try await self.complete(begun, over: try await begun.dial())
        await begun.end()
    }

    /// When the session is left, the transfer is cancelled, or the control connection is lost, the data connection closes immediately, and
    /// its token is invalid.
    @Test(arguments: ["cancel", "refuse", "leave", "block", "close"], [true, false])
    func theEndOfWhatItIsFor(_ how: String, _ tls: Bool) async throws {
        let begun = try await self.begin(tls: tls)
        let data = try await begun.dial()
        try await data.send(.dataAttach(begun.ticket.token))
        try await data.send(bytes: self.data(1000))
        try await eventually("it is attached") { await begun.bob.node.transport.tickets.count == 0 }
        switch how {
        case "cancel": try await begun.raw.send(.resource(.cancel(ResourceRefuse(id: begun.id, refusal: Refusal(code: .cancelled)))))
        case "refuse": _ = try await begun.bob.node.removeResource(begun.id)
        case "leave": try await begun.bob.node.leave(try #require(await begun.bob.node.sessions().first).id)
        case "block": _ = try await begun.bob.node.setTrust(.blocked, for: begun.raw.id.description)
        default: await begun.raw.close()
        }
        while await data.next() != nil {}
        try await eventually("no data connection is left") { await begun.bob.node.core.dataPathCount == 0 }
        await begun.end()
    }

    /// Connections with proven keys but no token count towards the limits of strangers.
    @Test func provenKeysWithoutATokenAreFew() async throws {
        let begun = try await self.begin()
        var idle: [RawPeer] = []
        for _ in 0...EarshotLimits.unprovenConnectionsPerAddress { idle.append(try await begun.dial()) }
        // The oldest one was evicted, but not the session's connection.
        while await idle[0].next() != nil {}
        try await begun.raw.roundTrip()
        for peer in idle { await peer.close() }
        await begun.end()
    }
}

extension Node {
    /// Whether a transfer waits for its data connection.
    fileprivate func isOpeningData(_ transfer: TransferID) -> Bool { self.core.dataPaths.waiting(transfer) != nil }
}

extension TestNode {
    /// Returns how many bytes of an incoming resource have reached the spool.
    func writtenBytes(of id: ResourceID) async -> UInt64 { (try? await self.node.spool.incoming(id).written) ?? 0 }
}
