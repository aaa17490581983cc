import EarshotWire
import NIOCore
import NIOEmbedded
import Testing

@testable import Earshot

@Suite struct ConnectionHandlerTests {
    @Test func anUnfinishedHandshakeTimesOut() throws {
        let bench = try HandlerBench()
        bench.advance(EarshotLimits.handshakeTime - .nanoseconds(1))
        #expect(bench.settled.value == [])
        #expect(bench.channel.isActive)
        bench.advance(.nanoseconds(1))
        #expect(bench.settled.value == ["timed-out"])
        #expect(!bench.channel.isActive)
    }

    @Test func aSlowHelloOfOneByteAtATimeEndsAtTheSameTime() throws {
        let bench = try HandlerBench()
        var hello = ByteBuffer(bytes: WireLimits.preamble)
        try FrameEncoder.encode(.hello(try makeHello(bench.initiator, "alice")), into: &hello)
        var seconds = 0
        while bench.channel.isActive, let byte = hello.readSlice(length: 1) {
            try bench.channel.writeInbound(byte)
            bench.advance(.seconds(1))
            seconds += 1
        }
        #expect(seconds == 10)
        #expect(bench.settled.value == ["timed-out"])
    }

    @Test func aHelloAboveTheLimitIsAViolation() throws {
        for (length, isAllowed) in [(WireLimits.helloPayload, true), (WireLimits.helloPayload + 1, false)] {
            let bench = try HandlerBench()
            var buffer = ByteBuffer(bytes: WireLimits.preamble)
            buffer.writeInteger(UInt32(length))
            buffer.writeInteger(FrameType.hello.rawValue)
            try bench.channel.writeInbound(buffer)
            #expect(bench.channel.isActive == isAllowed, "\(length)")
            #expect(bench.settled.value == (isAllowed ? [] : ["protocol-violation"]))
        }
    }

    @Test func aProvenConnectionOutlivesTheHandshakeTime() throws {
        let bench = try HandlerBench()
        try bench.prove()
        #expect(bench.settled.value == ["proven"])
        guard case .proven(let connection)? = bench.events.value.first else {
            Issue.record("the node was not told")
            return
        }
        #expect(connection.peer.id == bench.initiator.id)
        bench.advance(EarshotLimits.handshakeTime)
        #expect(bench.channel.isActive)
    }

    @Test func aQuietConnectionIsPinged() throws {
        let bench = try HandlerBench()
        try bench.prove()
        _ = try bench.received()
        bench.advance(.seconds(9))
        #expect(try bench.received() == [])
        bench.advance(.seconds(6))
        let pings = try bench.received()
        #expect(!pings.isEmpty)
        for case .ping(let value) in pings { try bench.send([.pong(value)]) }
        bench.advance(.seconds(9))
        #expect(bench.channel.isActive)
    }

    @Test func aSilentPeerIsDeclaredDead() throws {
        let bench = try HandlerBench()
        try bench.prove()
        bench.advance(EarshotLimits.deadAfter - .seconds(1))
        #expect(bench.end == nil)
        bench.advance(.seconds(6))
        #expect(bench.end == .dead, "noticed within the 30 s that the design promises")
    }

    /// The longest silence begins directly after a check.
    @Test func deadAfterTheWorstMoment() throws {
        let bench = try HandlerBench()
        try bench.prove()
        bench.advance(.milliseconds(2501))
        try bench.send([.ping(1)])
        bench.advance(.seconds(24))
        #expect(bench.end == nil)
        // With two seconds of tolerance for a busy machine.
        bench.advance(.seconds(4))
        #expect(bench.end == .dead)
    }

    /// A connection is pinged after `pingAfter`, is dead after `deadAfter`, and is not checked before that.
    @Test func silenceAtItsEdges() {
        let (ping, dead, moment) = (TimeAmount(EarshotLimits.pingAfter), TimeAmount(EarshotLimits.deadAfter), TimeAmount.nanoseconds(1))
        let heard = NIODeadline.uptimeNanoseconds(1_000)
        func look(after silence: TimeAmount, isBehind: Bool = false) -> (verdict: SignsOfLife.Verdict, next: TimeAmount) {
            var signs = SignsOfLife(at: .uptimeNanoseconds(0))
            signs.heard(at: heard)
            return signs.check(at: heard + silence, isBehind: isBehind)
        }
        #expect(look(after: .zero) == (.alive, ping))
        #expect(look(after: ping - moment) == (.alive, moment))
        #expect(look(after: ping) == (.ask(UInt64(ping.nanoseconds)), SignsOfLife.interval))
        #expect(look(after: dead - moment) == (.ask(UInt64((dead - moment).nanoseconds)), SignsOfLife.interval))
        #expect(look(after: dead).verdict == .dead)
        // Nothing was read. The other side may wait for an answer, and must not consider this side dead.
        var signs = SignsOfLife(at: heard)
        let told = (Int64(0)..<5).map { signs.check(at: heard + ping * $0, isBehind: true) }
        for (index, said) in told.enumerated() {
            #expect(said == (index % 2 == 0 ? .ask((heard + ping * Int64(index)).uptimeNanoseconds) : .alive, ping))
        }
        #expect(ping * 2 < dead)
    }

    /// The handler of a dial that never connects is removed without another end event, and emits nothing after that.
    @Test func aConnectionThatNeverWas() throws {
        let bench = try HandlerBench(isPlaintext: true, connects: false)
        let pipeline = bench.channel.pipeline.syncOperations
        pipeline.removeHandler(try pipeline.handler(type: ConnectionHandler.self), promise: nil)
        bench.advance(EarshotLimits.handshakeTime)
        #expect(bench.settled.value == [])
    }

    /// The time in which pending output is sent, and the other side may close too.
    @Test func aClosingConnectionEndsAfterItsTime() throws {
        let bench = try HandlerBench(isPlaintext: true)
        bench.advance(EarshotLimits.handshakeTime)
        #expect(bench.settled.value == ["timed-out"])
        bench.advance(EarshotLimits.closingTime - .nanoseconds(1))
        #expect(bench.counter.closes == [.output])
        #expect(bench.channel.isActive)
        bench.advance(.nanoseconds(1))
        #expect(bench.counter.closes == [.output, .all])
        #expect(!bench.channel.isActive)
    }

    /// Input in flight at the time of closing is read and dropped. More input from the peer is not read.
    @Test func aClosingConnectionReadsALimitedAmount() throws {
        let bench = try HandlerBench(isPlaintext: true)
        bench.advance(EarshotLimits.handshakeTime)
        func isRead() -> Bool {
            let before = bench.counter.reads
            bench.channel.read()
            return bench.counter.reads == before + 1
        }
        try bench.channel.writeInbound(ByteBuffer(repeating: 0, count: EarshotLimits.closingRead - 1))
        #expect(isRead())
        try bench.channel.writeInbound(ByteBuffer(repeating: 0, count: 1))
        #expect(!isRead())
    }

    @Test func anythingHeardIsASignOfLife() throws {
        let bench = try HandlerBench()
        try bench.prove()
        for value in 0..<20 {
            bench.advance(.seconds(9))
            try bench.send([.ping(UInt64(value))])
        }
        #expect(bench.end == nil)
        #expect(bench.channel.isActive)
    }

    /// A stranger has one turn at a time, with few frames. Nothing more is decoded or read until the node has handled them.
    @Test func strangersTurnWork() throws {
        let bench = try HandlerBench()
        try bench.prove()
        let turn = EarshotLimits.strangersTurnWork / Frame.sessionEnd(.random()).work
        let sent = (0..<2 * turn + 1).map { _ in Frame.sessionEnd(.random()) }
        try bench.send(sent)
        bench.channel.embeddedEventLoop.run()
        #expect(bench.handedOn.map(\.frames) == [Array(sent[..<turn])])
        let before = bench.counter.reads
        bench.channel.read()
        #expect(bench.counter.reads == before, "no more is read until the node has caught up")
        bench.endTurn()
        #expect(bench.handedOn.map(\.frames) == [Array(sent[turn..<2 * turn])], "turn by turn")
        #expect(bench.counter.reads == before)
        bench.endTurn()
        #expect(bench.handedOn.map(\.frames) == [Array(sent[(2 * turn)...])])
        bench.endTurn()
        #expect(bench.counter.reads == before + 1, "and then it is read on")
        #expect(bench.accounts.bytes == 0)
    }

    /// A peer in a session has longer turns, also one at a time.
    @Test func aTurnEndsAtItsLimitOfWork() throws {
        let bench = try HandlerBench()
        try bench.prove()
        try bench.send([.sessionEnd(.random())])
        bench.endTurn(isMember: true)
        let turn = EarshotLimits.turnWork / Frame.sessionEnd(.random()).work
        try bench.send((0..<2 * turn + 1).map { _ in Frame.sessionEnd(.random()) })
        for count in [turn, turn, 1] {
            bench.channel.embeddedEventLoop.run()
            #expect(bench.handedOn.map(\.frames.count) == [count])
            bench.endTurn(isMember: true)
        }
    }

    /// Returns unreliable messages, in runs that are taken together.
    private func unreliable(_ count: Int) -> [Frame] {
        (0..<count).map { number in
            // The last run contains the remainder.
            let run = min(number / FrameDecoder.shortestRun, count / FrameDecoder.shortestRun - 1)
            return .message(
                MessageFrame(
                    session: .random(), id: .random(), mode: .unreliable, sequence: 0, sentAtMilliseconds: 0,
                    contentType: run.isMultiple(of: 2) ? "a" : "b", body: ByteBuffer()))
        }
    }

    /// A turn has as many messages as fit. The rest waits for the next one.
    @Test func unreliableMessagesPerWork() throws {
        let bench = try HandlerBench()
        try bench.prove()
        try bench.send([.sessionEnd(.random())])
        bench.endTurn(isMember: true)
        let turn = EarshotLimits.turnWork * EarshotLimits.unreliableMessagesPerWork
        try bench.send(self.unreliable(turn + FrameDecoder.shortestRun))
        #expect(bench.handedOnUnreliable == [turn])
        bench.endTurn(isMember: true)
        #expect(bench.handedOnUnreliable == [FrameDecoder.shortestRun])
    }

    /// Unreliable messages are passed on in their own event, and later frames in the next turn.
    @Test func unreliableMessagesAreATurn() throws {
        let bench = try HandlerBench()
        try bench.prove()
        try bench.send([.sessionEnd(.random())])
        bench.endTurn(isMember: true)
        let count = FrameDecoder.shortestRun
        let last = Frame.sessionEnd(.random())
        try bench.send(self.unreliable(count) + [last])
        bench.channel.embeddedEventLoop.run()
        #expect(bench.handedOnUnreliable == [count])
        #expect(bench.handedOn.isEmpty)
        bench.endTurn(isMember: true)
        #expect(bench.handedOn.map(\.frames) == [[last]], "in the next turn")
    }

    /// Pings, which are answered without the node, also count: other connections of the loop run in between.
    @Test func pingsAreATurnToo() throws {
        let bench = try HandlerBench()
        try bench.prove()
        _ = try bench.received()
        try bench.send((0..<UInt64(EarshotLimits.strangersTurnWork) + 1).map { .ping($0) })
        #expect(try bench.received().count == EarshotLimits.strangersTurnWork)
        bench.channel.embeddedEventLoop.run()
        #expect(try bench.received().count == 1)
    }

    /// Input that was in the kernel when the peer ended the connection is bounded, with a lower limit if all connections together hold
    /// much. The same applies to a piece of a large frame from a peer without a session.
    @Test(arguments: [false, true], [false, true])
    func undecodedBytesAboveTheLimitCloseTheConnection(isCrowded: Bool, isMember: Bool) throws {
        let bench = try HandlerBench()
        try bench.prove()
        try bench.send([.sessionEnd(.random())])
        bench.endTurn(isMember: isMember)
        let limit = isCrowded ? EarshotLimits.crowdedUnprocessedBytes : EarshotLimits.undecodedBytes
        let other = bench.accounts.account(of: peerID(9))
        if isCrowded { other.charge(EarshotLimits.allUnprocessedBytes) }
        // One turn, and a little more that waits for the next one.
        let first = (isMember ? EarshotLimits.turnWork : EarshotLimits.strangersTurnWork) / Frame.sessionEnd(.random()).work
        try bench.send((0..<first).map { _ in .sessionEnd(.random()) })
        bench.channel.embeddedEventLoop.run()
        // Requested, and deferred until then.
        bench.channel.read()
        var waiting = ByteBuffer()
        while waiting.readableBytes < limit { try FrameEncoder.encode(.sessionEnd(.random()), into: &waiting) }
        try bench.channel.writeInbound(waiting.readSlice(length: limit))
        #expect(!bench.isClosing)
        try bench.channel.writeInbound(ByteBuffer(bytes: [0]))
        #expect(bench.isClosing)
        #expect(bench.accounts.bytes == (isCrowded ? EarshotLimits.allUnprocessedBytes : 0) + first * 256, "and nothing of it is held")
        if isCrowded { other.giveBack(EarshotLimits.allUnprocessedBytes) }
    }

    /// Input from before reading was suspended is decoded turn by turn, however much all connections hold, because the peer has not gone.
    @Test func whatWaitsForATurnIsNoneThatWasLeft() throws {
        let bench = try HandlerBench()
        try bench.prove()
        try bench.send([.sessionEnd(.random())])
        bench.endTurn(isMember: true)
        let other = bench.accounts.account(of: peerID(9))
        other.charge(EarshotLimits.allUnprocessedBytes)
        var waiting = ByteBuffer()
        let count = 2 * EarshotLimits.crowdedUnprocessedBytes
        while waiting.readableBytes < count { try FrameEncoder.encode(.sessionEnd(.random()), into: &waiting) }
        try bench.channel.writeInbound(waiting)
        let before = bench.counter.reads
        bench.channel.read()
        bench.endTurn(isMember: true)
        #expect(!bench.isClosing && bench.counter.reads == before, "it waits for its turn")
        while !bench.handedOn.isEmpty { bench.endTurn(isMember: true) }
        #expect(!bench.isClosing && bench.counter.reads == before + 1)
        other.giveBack(EarshotLimits.allUnprocessedBytes)
    }

    /// A pending turn retains the handler, but none of the peer's input.
    @Test func whatWasLeftGoesWithTheConnection() throws {
        let bench = try HandlerBench()
        try bench.prove()
        try bench.send((0..<EarshotLimits.strangersTurnWork).map { _ in .sessionEnd(.random()) })
        let handler = try bench.channel.pipeline.syncOperations.handler(type: ConnectionHandler.self)
        #expect(handler.decoder.bufferedBytes > 0)
        bench.channel.pipeline.fireChannelInactive()
        #expect(handler.decoder.bufferedBytes == 0)
    }

    @Test func aPingFloodDoesNotPileUpAnswers() throws {
        let bench = try HandlerBench()
        try bench.prove()
        bench.channel.isWritable = false
        bench.counter.held = []
        let before = bench.counter.reads
        var pings = 0
        // Like the socket: one read, one delivery.
        while pings < 200_000 {
            let reads = bench.counter.reads
            bench.channel.read()
            guard bench.counter.reads > reads else { break }
            // One at a time: pings of one read are answered in one write, which takes less memory.
            try bench.send([.ping(UInt64(pings))])
            bench.channel.embeddedEventLoop.run()
            pings += 1
        }
        #expect(bench.counter.reads > before)
        #expect(pings < 200_000, "answers that nobody reads stop the reading")
        let stuck = bench.counter.reads
        for promise in bench.counter.held ?? [] { promise.succeed() }
        bench.counter.held = nil
        #expect(bench.counter.reads == stuck + 1, "and their going out resumes it")
    }
}

@Suite struct FirstByteTests {
    private func channel(_ preference: EncryptionPreference) throws -> EmbeddedChannel {
        let channel = EmbeddedChannel()
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        try channel.pipeline.syncOperations.addHandler(FirstByteHandler(preference: preference) { _, _ in })
        return channel
    }

    /// The time in which a refused peer may read the reason.
    @Test func aRefusedPeerHasTimeToReadTheReason() throws {
        let channel = try self.channel(.none)
        let counter = HandlerBench.ReadCounter()
        try channel.pipeline.syncOperations.addHandler(counter, position: .first)
        try channel.writeInbound(ByteBuffer(bytes: [WireLimits.tlsHandshakeByte]))
        channel.embeddedEventLoop.advanceTime(by: TimeAmount(EarshotLimits.closingTime) - .nanoseconds(1))
        #expect(counter.closes == [.output])
        channel.embeddedEventLoop.advanceTime(by: .nanoseconds(1))
        #expect(counter.closes == [.output, .all])
    }

    @Test(
        arguments: [
            (EncryptionPreference.required, [0x16, 3, 1]), (.optional, [0x16, 3, 1]), (.optional, WireLimits.preamble),
            (.none, WireLimits.preamble),
        ] as [(EncryptionPreference, [UInt8])]) func whatThePreferencePermitsGoesOn(preference: EncryptionPreference, bytes: [UInt8]) throws
    {
        let channel = try self.channel(preference)
        try channel.writeInbound(ByteBuffer(bytes: bytes))
        #expect(channel.isActive)
        #expect(try channel.readInbound(as: ByteBuffer.self) == ByteBuffer(bytes: bytes))
        #expect(try channel.readOutbound(as: ByteBuffer.self) == nil)
    }

    @Test(arguments: [(EncryptionPreference.required, WireLimits.preamble), (.none, [0x16, 3, 1])] as [(EncryptionPreference, [UInt8])])
    func whatItExcludesIsToldWhyNot(preference: EncryptionPreference, bytes: [UInt8]) throws {
        let channel = try self.channel(preference)
        try channel.writeInbound(ByteBuffer(bytes: bytes))
        #expect(!channel.isActive)
        #expect(try channel.readInbound(as: ByteBuffer.self) == nil)
        var answer = try #require(try channel.readOutbound(as: ByteBuffer.self))
        #expect(answer.readBytes(length: WireLimits.preamble.count) == WireLimits.preamble)
        var decoder = FrameDecoder()
        decoder.feed(answer)
        guard case .refusal(let refusal)? = try decoder.next() else {
            Issue.record("no refusal")
            return
        }
        #expect(refusal.code == .encryptionMismatch)
    }

    @Test(arguments: [0x00, 0x15, 0x17, 0x47, 0x80, 0xFF] as [UInt8]) func garbageIsClosedWithoutAWord(byte: UInt8) throws {
        let channel = try self.channel(.optional)
        try channel.writeInbound(ByteBuffer(bytes: [byte]))
        #expect(!channel.isActive)
        #expect(try channel.readOutbound(as: ByteBuffer.self) == nil)
    }
}
