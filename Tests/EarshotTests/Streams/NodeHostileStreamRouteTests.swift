import EarshotWire
import Foundation
import NIOCore
import Testing

@testable import Earshot

/// Streams over data connections, with a peer whose bytes the test controls. The peer has opened the control connection, so the node gives
/// it the tickets.
@Suite(.timeLimit(.minutes(1))) struct NodeHostileStreamRouteTests {
    private struct Begun {
        let bob: TestNode
        let raw: RawPeer
        let id: StreamID
        let content: StreamContent
        let limit: UInt64

        func end() async {
            await self.raw.close()
            await self.bob.stop()
        }

        func ticket() async throws -> DataTicket {
            try await self.raw.next { if case .dataTicket(let ticket) = $0 { ticket } else { nil } }
        }

        /// Opens a second connection, which is proven as a data connection and presents the token.
        func attach(_ token: DataToken, as identity: Identity? = nil) async throws -> RawPeer {
            let data = try await RawPeer(to: self.bob, as: identity ?? self.raw.identity)
            try await data.proveForData()
            try await data.send(.dataAttach(token))
            return data
        }

        func calledBack() async throws -> UInt64 {
            try await self.raw.next { if case .stream(.reroute(let reroute)) = $0, reroute.id == self.id { reroute.offset } else { nil } }
        }

        func aborted() async throws -> WireErrorCode {
            try await self.raw.next { if case .stream(.abort(let abort)) = $0, abort.id == self.id { abort.refusal.code } else { nil } }
        }

        /// Returns the number of remaining bytes that the reader receives.
        func rest() async throws -> Int {
            var count = 0
            while let piece = try await self.content.next() { count += piece.readableBytes }
            return count
        }
    }

    /// Begins a stream from the raw peer. The node has accepted it, four bytes have arrived, and the peer has asked for a data connection.
    /// With `knows`, its hello announces the extension.
    private func begin(knows: Bool = true) async throws -> Begun {
        let bob = try await TestNode("bob") { $0.fromUnknown = .accept }
        let raw = try await RawPeer(to: bob)
        var hello = try raw.hello()
        hello.extensions = knows ? [.streamReroute] : []
        try await raw.prove(hello: hello)
        let session = try await raw.join()
        let id = StreamID.random()
        try await raw.send(.stream(.open(StreamOpen(session: session, id: id, name: try StreamName("x")))))
        let content = try await bob.node.acceptNextStream()
        let accept = try await raw.next { if case .stream(.accept(let accept)) = $0 { accept } else { nil } }
        try await raw.send(self.control(id, 4), .stream(.reroute(StreamReroute(id: id, offset: 4))))
        return Begun(bob: bob, raw: raw, id: id, content: content, limit: accept.limit)
    }

    private func control(_ id: StreamID, _ count: Int) -> Frame {
        .stream(.data(StreamData(id: id, data: ByteBuffer(repeating: 1, count: count))))
    }

    private func rerouted(_ begun: Begun, _ offset: UInt64) -> Frame { .stream(.rerouted(StreamReroute(id: begun.id, offset: offset))) }

    private func data(_ count: Int, end: Bool = false) -> [UInt8] {
        var buffer = ByteBuffer()
        DataFrame.data(count: count).encode(into: &buffer)
        buffer.writeRepeatingByte(7, count: count)
        if end { DataFrame.end.encode(into: &buffer) }
        return Array(buffer.readableBytesView)
    }

    private func finish(_ begun: Begun, size: UInt64) async throws {
        try await begun.raw.send(.stream(.end(StreamEnd(id: begun.id, size: size))))
        #expect(try await begun.rest() == Int(size))
        try await begun.content.finish()
        #expect(try await begun.bob.streamClosed().error == nil)
        try await eventually("no data connection is left") { await begun.bob.node.core.dataPathCount == 0 }
        await begun.end()
    }

    /// The end may overtake the bytes.
    @Test(arguments: [true, false]) func theBytesAndTheEndInEitherOrder(_ endFirst: Bool) async throws {
        let begun = try await self.begin()
        let data = try await begun.attach(try await begun.ticket().token)
        try await begun.raw.send(self.rerouted(begun, 4))
        if endFirst {
            try await begun.raw.send(.stream(.end(StreamEnd(id: begun.id, size: 1004))))
            try await begun.raw.roundTrip()
            try await data.send(bytes: self.data(1000))
            #expect(try await begun.rest() == 1004)
            try await begun.content.finish()
            await begun.end()
        } else {
            try await data.send(bytes: self.data(1000))
            try await self.finish(begun, size: 1004)
        }
    }

    @Test(arguments: [false, true]) func beyondWhatIsPermitted(_ afterEnd: Bool) async throws {
        let begun = try await self.begin()
        let data = try await begun.attach(try await begun.ticket().token)
        try await begun.raw.send(self.rerouted(begun, 4))
        if afterEnd {
            try await begun.raw.send(.stream(.end(StreamEnd(id: begun.id, size: 10))))
            try await begun.raw.roundTrip()
            try await data.send(bytes: self.data(7))
        } else {
            try await data.send(bytes: self.data(Int(begun.limit) - 4))
            try await data.send(bytes: self.data(1))
        }
        #expect(try await begun.aborted() == .protocolViolation)
        #expect(try await begun.bob.streamClosed().error == .protocolViolation)
        while await data.next() != nil {}
        // Only the stream has ended.
        try await begun.raw.roundTrip()
        await begun.end()
    }

    @Test func anotherFrameThanData() async throws {
        let begun = try await self.begin()
        let data = try await begun.attach(try await begun.ticket().token)
        try await begun.raw.send(self.rerouted(begun, 4))
        try await data.send(.stream(.done(begun.id)))
        #expect(try await begun.aborted() == .protocolViolation)
        await begun.end()
    }

    /// The data connection is lost or ended early, after some of its bytes. The rest arrives over the control connection.
    @Test(arguments: ["lost", "ended", "lost before its bytes were due"], [true, false])
    func aStreamWithALostDataConnectionIsCalledBack(_ how: String, endSent: Bool) async throws {
        let begun = try await self.begin()
        let data = try await begun.attach(try await begun.ticket().token)
        var offset: UInt64 = 4
        if how == "lost before its bytes were due" {
            try await eventually("it stands") { await begun.bob.node.dataConnections[TransferID(begun.id)] != nil }
            await data.close()
            try await begun.raw.send(self.rerouted(begun, 4))
        } else {
            try await begun.raw.send(self.rerouted(begun, 4))
            try await data.send(bytes: self.data(1000, end: how == "ended"))
            offset = 1004
            if how == "lost" {
                var taken = 0
                while taken < 1004 { taken += try #require(try await begun.content.next()).readableBytes }
                await data.close()
            }
        }
        #expect(try await begun.calledBack() == offset)
        // The sender may not have noticed.
        if endSent { try await begun.raw.send(.stream(.end(StreamEnd(id: begun.id, size: 2000)))) }
        try await begun.raw.send(self.rerouted(begun, offset), self.control(begun.id, 2000 - Int(offset)))
        try await begun.raw.send(.stream(.end(StreamEnd(id: begun.id, size: 2000))))
        #expect(try await begun.rest() == (how == "lost" ? 996 : 2000))
        try await begun.content.finish()
        #expect(try await begun.bob.streamClosed().error == nil)
        await begun.end()
    }

    /// Neither side dials. The stream continues without a message, or requests its bytes again if its sender assumes a data connection.
    @Test(arguments: [true, false]) func nobodyCanDial(_ claims: Bool) async throws {
        let begun = try await self.begin()
        let transfer = TransferID(begun.id)
        _ = try await begun.ticket()
        try await begun.raw.send(.dataUnavailable(transfer), .dataTicket(DataTicket(transfer: transfer, token: DataToken())))
        try await begun.raw.next { if case .dataUnavailable(transfer) = $0 { () } else { nil } }
        guard claims else {
            try await begun.raw.send(self.control(begun.id, 6))
            return try await self.finish(begun, size: 10)
        }
        try await begun.raw.send(self.rerouted(begun, 4))
        #expect(try await begun.calledBack() == 4)
        try await begun.raw.send(self.rerouted(begun, 4), self.control(begun.id, 6))
        try await self.finish(begun, size: 10)
    }

    /// A token is valid once, for its owner, while its stream is open.
    @Test(arguments: ["again", "thief", "over"]) func aTokenIsValidOnceForItsOwner(_ how: String) async throws {
        let begun = try await self.begin()
        let token = try await begun.ticket().token
        let identity = how == "thief" ? try RawPeer.makeIdentity() : nil
        var first: RawPeer?
        if how == "again" {
            first = try await begun.attach(token)
            try await eventually("it stands") { await begun.bob.node.dataConnections[TransferID(begun.id)] != nil }
        }
        if how == "over" {
            try await begun.raw.send(.stream(.abort(StreamRefuse(id: begun.id, refusal: Refusal(code: .cancelled)))))
            _ = try await begun.bob.streamClosed()
        }
        let late = try await begun.attach(token, as: identity)
        #expect(await late.refusal() == .declined)
        if how == "over" { return await begun.end() }
        let data: RawPeer
        if let first { data = first } else { data = try await begun.attach(token) }
        try await begun.raw.send(self.rerouted(begun, 4))
        try await data.send(bytes: self.data(6))
        try await self.finish(begun, size: 10)
    }

    @Test func askedForAnUnknownStream() async throws {
        let begun = try await self.begin()
        try await begun.raw.send(.stream(.reroute(StreamReroute(id: .random(), offset: 0))))
        #expect(await begun.raw.refusal() == .protocolViolation)
        #expect(try await begun.bob.streamClosed().error == .unavailable)
        await begun.end()
    }

    /// A peer may not use an extension that its hello does not announce.
    @Test func askedForByAPeerThatDoesNotKnowIt() async throws {
        let begun = try await self.begin(knows: false)
        #expect(await begun.raw.refusal() == .protocolViolation)
        #expect(try await begun.bob.streamClosed().error == .unavailable)
        #expect(await begun.bob.node.core.dataPathCount == 0)
        await begun.end()
    }

    // MARK: The node sends

    /// A peer whose hello does not announce the extension is not asked.
    @Test(arguments: [true, false]) func whoDoesNotKnowItIsNotAsked(_ knows: Bool) async throws {
        let bob = try await TestNode("bob") { $0.fromUnknown = .accept }
        let raw = try await RawPeer(to: bob)
        var hello = try raw.hello()
        hello.extensions = knows ? [.streamReroute] : []
        try await raw.prove(hello: hello)
        _ = try await raw.join()
        let size = EarshotLimits.streamRerouteAfter + 100
        let body = ScriptedBody()
        body.feed.yield(ByteBuffer(repeating: 7, count: Int(size)))
        let opened = Task { try await bob.node.openStream(to: raw.id.description, name: "x", body: body) }
        let id = try await raw.next { if case .stream(.open(let open)) = $0 { open.id } else { nil } }
        try await raw.send(.stream(.accept(StreamAccept(id: id, limit: 2 * size))))
        var received: UInt64 = 0
        var isAsked = false
        while received < size || isAsked != knows {
            switch try #require(await raw.next()) {
            case .stream(.data(let data)): received += UInt64(data.data.readableBytes)
            case .stream(.reroute(let reroute)):
                #expect(knows && reroute == StreamReroute(id: id, offset: received))
                isAsked = true
            default: break
            }
        }
        if !knows {
            // If the node asked, the request would precede the end.
            body.feed.finish()
            let frame = try await raw.next { frame in
                switch frame {
                case .stream(.reroute), .stream(.end): frame
                default: nil
                }
            }
            #expect(frame == .stream(.end(StreamEnd(id: id, size: size))))
            try await raw.send(.stream(.done(id)))
            #expect(try await opened.value.error == nil)
        }
        await raw.close()
        _ = await opened.result
        await bob.stop()
    }

    /// Everything was sent, including the end, but nothing has arrived. The bytes and the end are sent again.
    @Test func calledBackAfterTheEnd() async throws {
        let bob = try await TestNode("bob") { $0.fromUnknown = .accept }
        let raw = try await RawPeer(to: bob)
        var hello = try raw.hello()
        hello.extensions = [.streamReroute]
        try await raw.prove(hello: hello)
        _ = try await raw.join()
        let first = EarshotLimits.streamRerouteAfter
        let body = ScriptedBody()
        body.feed.yield(ByteBuffer(repeating: 7, count: Int(first)))
        let opened = Task { try await bob.node.openStream(to: raw.id.description, name: "x", body: body) }
        let id = try await raw.next { if case .stream(.open(let open)) = $0 { open.id } else { nil } }
        try await raw.send(.stream(.accept(StreamAccept(id: id, limit: 2 * first))))
        let token = try await raw.next { if case .dataTicket(let ticket) = $0 { ticket.token } else { nil } }
        let data = try await RawPeer(to: bob, as: raw.identity)
        try await data.proveForData()
        try await data.send(.dataAttach(token))
        let from = try await raw.next { if case .stream(.rerouted(let rerouted)) = $0 { rerouted.offset } else { nil } }
        #expect(from == first)
        for number in 0..<10 { body.feed.yield(ByteBuffer(repeating: UInt8(number), count: 1000)) }
        body.feed.finish()
        let end = try await raw.next { if case .stream(.end(let end)) = $0 { end.size } else { nil } }
        #expect(end == first + 10_000)
        await data.close()
        try await raw.send(.stream(.reroute(StreamReroute(id: id, offset: first + 500))))
        #expect(try await raw.next { if case .stream(.rerouted(let rerouted)) = $0 { rerouted.offset } else { nil } } == first + 500)
        var rest: [UInt8] = []
        while rest.count < 9500 {
            rest += try await raw.next { if case .stream(.data(let data)) = $0 { Array(data.data.readableBytesView) } else { nil } }
        }
        let sent: [UInt8] = (0..<10).flatMap { number in [UInt8](repeating: UInt8(number), count: 1000) }
        #expect(rest == Array(sent.dropFirst(500)))
        #expect(try await raw.next { if case .stream(.end(let end)) = $0 { end.size } else { nil } } == end)
        try await raw.send(.stream(.done(id)))
        #expect(try await opened.value.transferred == end)
        await raw.close()
        await bob.stop()
    }
}
