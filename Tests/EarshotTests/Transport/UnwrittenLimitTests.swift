import NIOCore
import NIOEmbedded
import Testing

@testable import Earshot
@testable import EarshotWire

@Suite struct UnwrittenLimitTests {
    /// All replies of one turn are in one write.
    @Test func answersOfATurnGoTogether() throws {
        let bench = try HandlerBench()
        try bench.prove()
        bench.channel.isWritable = false
        bench.counter.held = []
        try bench.send((0..<EarshotLimits.strangersTurnWork).map { .ping(UInt64($0)) })
        #expect(bench.counter.held?.count == 1)
        try bench.send([.ping(0)])
        bench.channel.embeddedEventLoop.run()
        #expect(bench.counter.held?.count == 2)
        for promise in bench.counter.held ?? [] { promise.succeed() }
    }

    /// Waiting replies take about as much memory as is counted for them.
    @Test func answersOfATurnHaveNoMoreRoomThanTheyNeed() throws {
        let bench = try HandlerBench()
        try bench.prove()
        while try bench.channel.readOutbound(as: ByteBuffer.self) != nil {}
        try bench.send((0..<EarshotLimits.strangersTurnWork).map { .ping(UInt64($0)) })
        let pongs = try #require(try bench.channel.readOutbound(as: ByteBuffer.self))
        #expect(pongs.readableBytes == EarshotLimits.strangersTurnWork * 13)
        #expect(pongs.storageCapacity <= 2 * pongs.readableBytes)
    }

    /// The limit of waiting replies at which reading stops. It is lower if much waits on all connections together, but not as low for
    /// members. Each write of replies counts with its overhead.
    @Test(arguments: [false, true], [false, true]) func readingStopsAtTheLimitOfUnwrittenBytes(isCrowded: Bool, isMember: Bool) throws {
        let bench = try HandlerBench()
        try bench.prove()
        if isMember, case .proven(let connection)? = bench.events.value.first { connection.turnEnded(0, isMember: true) }
        let others = EarshotLimits.allUnwrittenBytes - (isCrowded ? 0 : EarshotLimits.unwrittenBytes)
        bench.accounts.noteUnwritten(others)
        defer { bench.accounts.noteUnwritten(-others) }
        let crowdedLimit = isMember ? EarshotLimits.crowdedMemberUnwrittenBytes : EarshotLimits.crowdedUnwrittenBytes
        let limit = isCrowded ? crowdedLimit : EarshotLimits.unwrittenBytes
        bench.channel.isWritable = false
        bench.counter.held = []
        var pong = ByteBuffer()
        try FrameEncoder.encode(.pong(0), into: &pong)
        // The memory of a waiting write beyond its bytes, as in `FrameWriter`.
        let weight = pong.readableBytes + 256
        let most = (limit - 1) / weight
        func isRead() -> Bool {
            let before = bench.counter.reads
            bench.channel.read()
            return bench.counter.reads == before + 1
        }
        for number in 0..<most {
            try bench.send([.ping(UInt64(number))])
            bench.channel.embeddedEventLoop.run()
        }
        #expect(bench.counter.held?.count == most)
        #expect(isRead())
        try bench.send([.ping(0)])
        #expect(!isRead(), "with as much as the limit, nothing more is read")
        let before = bench.counter.reads
        let held = bench.counter.held ?? []
        held.first?.succeed()
        #expect(bench.counter.reads == before + 1, "one that has gone out is enough")
        for promise in held.dropFirst() { promise.succeed() }
    }

    /// Returns a session with a full socket, and a function that sends this number of bytes in messages of the given size.
    private func full(size: Int = 64 * 1024) throws -> (bench: HandlerBench, send: (Int) -> Void) {
        let bench = try HandlerBench()
        try bench.prove()
        guard case .proven(let connection)? = bench.events.value.first else {
            throw EarshotError(.notConnected, "the node was not told")
        }
        let session = SessionID.random()
        try bench.send([.sessionResume(session)])
        connection.send([.sessionResume(session)])
        bench.channel.isWritable = false
        bench.counter.held = []
        let body = ByteBuffer(repeating: 1, count: size)
        func send(_ bytes: Int) {
            let messages = (0..<bytes / size).map { number in
                MessageFrame(
                    session: session, id: .random(), mode: .reliable, sequence: UInt64(number), sentAtMilliseconds: 0, contentType: "a/b",
                    body: body)
            }
            connection.send(messages.map { .message($0) })
        }
        return (bench, send)
    }

    /// Advances the time, in which the peer sends a ping now and then.
    private func pass(_ seconds: Int64, _ bench: HandlerBench) throws {
        for _ in 0..<seconds / 5 {
            bench.advance(.seconds(5))
            try bench.send([.ping(0)])
        }
    }

    /// A peer that sends but reads nothing is disconnected if more than the limit waits.
    @Test func aPeerThatReadsNothingIsDisconnected() throws {
        let (bench, send) = try self.full()
        // The frame headers count as well.
        send(EarshotLimits.unreadBytes - 1024 * 1024)
        try self.pass(EarshotLimits.unreadTime.components.seconds, bench)
        #expect(bench.end == nil)
        send(1024 * 1024)
        #expect(bench.end == .dead)
        for promise in bench.counter.held ?? [] { promise.succeed() }
    }

    /// Also if nothing more is sent.
    @Test func aPeerThatReadsNothingIsDisconnectedAlsoInSilence() throws {
        let (bench, send) = try self.full()
        send(EarshotLimits.unreadBytes)
        try self.pass(EarshotLimits.unreadTime.components.seconds - 5, bench)
        #expect(bench.end == nil)
        try self.pass(10, bench)
        #expect(bench.end == .dead)
        for promise in bench.counter.held ?? [] { promise.succeed() }
    }

    /// A peer that reads slowly has a higher limit, and a burst an even higher one.
    @Test(arguments: [false, true]) func mostUnreadBytes(isMore: Bool) throws {
        let (bench, send) = try self.full()
        send(EarshotLimits.mostUnreadBytes + (isMore ? 1024 * 1024 : -1024 * 1024))
        try self.pass(EarshotLimits.deadAfter.components.seconds - 5, bench)
        #expect(bench.end == nil)
        for _ in 0..<10 {
            try #require(bench.counter.held?.first).succeed()
            bench.counter.held?.removeFirst()
            try self.pass(15, bench)
        }
        #expect(bench.end == (isMore ? .dead : nil))
        for promise in bench.counter.held ?? [] { promise.succeed() }
    }

    /// This side's own output does not prevent reading from the peer, because two peers that send much would wait for each other. Its
    /// progress shows that the other side is alive, also for a large body.
    @Test(arguments: [100, 100_000]) func ownMessagesAreNotCounted(size: Int) throws {
        let (bench, send) = try self.full(size: size)
        send(2 * EarshotLimits.unwrittenBytes)
        let held = try #require(bench.counter.held)
        #expect(held.count >= 2 * EarshotLimits.unwrittenBytes / (256 * 1024))
        #expect(bench.accounts.unwrittenLimit(isMember: true) == EarshotLimits.unwrittenBytes)
        let before = bench.counter.reads
        bench.channel.read()
        #expect(bench.counter.reads == before + 1)
        for promise in held { promise.succeed() }
    }

    /// While so much waits that nothing is read, a dead peer could not be distinguished from a slow one.
    @Test func deadWithAsMuchAsTheLimit() throws {
        let bench = try HandlerBench()
        try bench.prove()
        try self.fill(bench, beyond: 0)
        bench.advance(EarshotLimits.deadAfter - .seconds(1))
        #expect(bench.end == nil)
        bench.advance(.seconds(6))
        #expect(bench.end == .dead)
        for promise in bench.counter.held ?? [] { promise.succeed() }
    }

    /// A slow peer accepts some output now and then.
    @Test func whatTheSocketTakesIsASignOfLife() throws {
        let bench = try HandlerBench()
        try bench.prove()
        try self.fill(bench, beyond: 16)
        var held = (bench.counter.held ?? [])[...]
        for _ in 0..<8 {
            bench.advance(.seconds(9))
            held.popFirst()?.succeed()
        }
        #expect(bench.end == nil)
        bench.advance(EarshotLimits.deadAfter + .seconds(5))
        #expect(bench.end == .dead, "and takes nothing more")
        for promise in (bench.counter.held ?? []).dropFirst(8) { promise.succeed() }
    }

    /// Small frames of more than 256 KiB are sent in several writes, in order.
    @Test func piecesOfALongWrite() throws {
        let bench = try HandlerBench()
        try bench.prove()
        _ = try bench.received()
        guard case .proven(let connection)? = bench.events.value.first else {
            Issue.record("the node was not told")
            return
        }
        let frames = (0..<16_000).map { _ in Frame.sessionResume(.random()) }
        connection.send(frames)
        var writes = 0
        var sent: [Frame] = []
        while let buffer = try bench.channel.readOutbound(as: ByteBuffer.self) {
            writes += 1
            bench.decoder.feed(buffer)
            while let frame = try bench.decoder.next() { sent.append(frame) }
        }
        #expect(writes == 2)
        #expect(sent == frames)
    }

    /// Makes replies wait for the socket, as many as stop the reading, and `beyond` more.
    private func fill(_ bench: HandlerBench, beyond: Int) throws {
        bench.channel.isWritable = false
        bench.counter.held = []
        // As above: 13 bytes of a pong, and the overhead.
        let most = EarshotLimits.unwrittenBytes / (13 + 256) + 1
        for number in 0..<most + beyond {
            try bench.send([.ping(UInt64(number))])
            bench.channel.embeddedEventLoop.run()
        }
        bench.channel.read()
    }
}
