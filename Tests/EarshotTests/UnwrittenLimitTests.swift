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

    /// So much may wait for the socket before nothing more is read; each write of answers counts with its share.
    @Test func unwrittenBytes() throws {
        let bench = try HandlerBench()
        try bench.prove()
        bench.channel.isWritable = false
        bench.counter.held = []
        var pong = ByteBuffer()
        try FrameEncoder.encode(.pong(0), into: &pong)
        // What a write that waits takes in memory beyond its bytes, as `FrameWriter` has it.
        let weight = pong.readableBytes + 256
        let most = (EarshotLimits.unwrittenBytes - 1) / weight
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
}
