import NIOCore
import NIOEmbedded
import Testing

@testable import Earshot
@testable import EarshotWire

@Suite struct UnwrittenLimitTests {
    /// What one turn asks is answered in one write.
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

    /// They take about as much memory as is counted for them.
    @Test func answersOfATurnHaveNoMoreRoomThanTheyNeed() throws {
        let bench = try HandlerBench()
        try bench.prove()
        while try bench.channel.readOutbound(as: ByteBuffer.self) != nil {}
        try bench.send((0..<EarshotLimits.strangersTurnWork).map { .ping(UInt64($0)) })
        let pongs = try #require(try bench.channel.readOutbound(as: ByteBuffer.self))
        #expect(pongs.readableBytes == EarshotLimits.strangersTurnWork * 13)
        #expect(pongs.storageCapacity <= 2 * pongs.readableBytes)
    }

    /// So much may wait for the socket before nothing more is read, less where much waits on all connections together, but not so little for
    /// members; each write of answers counts with its share.
    @Test(arguments: [false, true], [false, true]) func unwrittenBytes(isCrowded: Bool, isMember: Bool) throws {
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
        // What a write that waits takes in memory beyond its bytes, as `FrameWriter` has it.
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

    /// A session that stands, and a socket that is full; and what sends so many bytes of messages of that size there, together.
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

    /// It says something now and then.
    private func pass(_ seconds: Int64, _ bench: HandlerBench) throws {
        for _ in 0..<seconds / 5 {
            bench.advance(.seconds(5))
            try bench.send([.ping(0)])
        }
    }

    /// A peer that says something and reads nothing is given up, with more than that.
    @Test func unreadBytes() throws {
        let (bench, send) = try self.full()
        // The heads count as well.
        send(EarshotLimits.unreadBytes - 1024 * 1024)
        try self.pass(EarshotLimits.unreadTime.components.seconds, bench)
        #expect(bench.end == nil)
        send(1024 * 1024)
        #expect(bench.end == .dead)
        for promise in bench.counter.held ?? [] { promise.succeed() }
    }

    /// Also where nothing more is sent.
    @Test func unreadTime() throws {
        let (bench, send) = try self.full()
        send(EarshotLimits.unreadBytes)
        try self.pass(EarshotLimits.unreadTime.components.seconds - 5, bench)
        #expect(bench.end == nil)
        try self.pass(10, bench)
        #expect(bench.end == .dead)
        for promise in bench.counter.held ?? [] { promise.succeed() }
    }

    /// One that reads a little has more, and a burst yet more.
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

    /// Nor does what this side sends of its own accord keep the peer from being read: two that send much would wait for each other. It shows
    /// that the other side is there when it goes out, a large body too.
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

    /// With so much waiting that nothing is read, a peer that is gone could not be heard, and would be taken for one that is only slow.
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

    /// A slow one takes something now and then.
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

    /// Small frames of more than 256 KiB go out in several writes, in order.
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

    /// Has answers wait for the socket, as many as have nothing more read, and so many more.
    private func fill(_ bench: HandlerBench, beyond: Int) throws {
        bench.channel.isWritable = false
        bench.counter.held = []
        // As above: 13 bytes of a pong, and its share.
        let most = EarshotLimits.unwrittenBytes / (13 + 256) + 1
        for number in 0..<most + beyond {
            try bench.send([.ping(UInt64(number))])
            bench.channel.embeddedEventLoop.run()
        }
        bench.channel.read()
    }
}
