import NIOCore
import NIOEmbedded
import Testing

@testable import Earshot
@testable import EarshotWire

@Suite struct UnwrittenLimitTests {
    /// So much may wait for the socket before nothing more is read; each answer counts with its share.
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
        for start in stride(from: 0, to: most, by: 1000) {
            try bench.send((start..<min(start + 1000, most)).map { .ping(UInt64($0)) })
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
