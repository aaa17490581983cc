import EarshotWire
import Foundation
import Logging
import NIOCore
import NIOEmbedded
import Synchronization
import Testing

@testable import Earshot

@Suite struct UnprovenConnectionTests {
    private let connections = UnprovenConnections()
    private let closed = Box<[Int]>([])

    private func admit(_ number: Int, _ host: String, _ tokens: inout [LinkID]) throws {
        let token = LinkID.next()
        tokens.append(token)
        self.connections.admit(token, from: try SocketAddress(ipAddress: host, port: 1)) { [closed] in
            closed.withLock { $0.append(number) }
        }
    }

    @Test func theOldestUnprovenConnectionGivesWay() throws {
        var tokens: [LinkID] = []
        for number in 0..<EarshotLimits.unprovenConnections { try self.admit(number, "10.0.0.\(number + 1)", &tokens) }
        #expect(self.closed.value == [])
        #expect(self.connections.count == EarshotLimits.unprovenConnections)
        try self.admit(99, "10.0.1.1", &tokens)
        #expect(self.closed.value == [0], "the oldest gives way")
        #expect(self.connections.count == EarshotLimits.unprovenConnections)
        // A connection that was proven makes room.
        self.connections.remove(tokens[1])
        try self.admit(100, "10.0.1.2", &tokens)
        #expect(self.closed.value == [0])
    }

    @Test(arguments: [
        (same: ["10.0.0.1", "10.0.0.1", "::ffff:10.0.0.1", "10.0.0.1", "10.0.0.1"], other: "10.0.0.2"),
        (same: ["fd00::1", "fd00::2", "fd00::ffff:0:0:1", "fd00::1", "fd00::3"], other: "fd00:0:0:1::1"),
    ]) func unprovenConnectionsPerAddress(same: [String], other: String) throws {
        var tokens: [LinkID] = []
        try self.admit(-1, other, &tokens)
        for number in 0..<EarshotLimits.unprovenConnectionsPerAddress { try self.admit(number, same[number], &tokens) }
        #expect(self.closed.value == [])
        try self.admit(4, same[4], &tokens)
        #expect(self.closed.value == [0], "the oldest of the same address gives way, not the oldest of all")
        try self.admit(5, other, &tokens)
        #expect(self.closed.value == [0])
    }

    /// Consecutive connections are never many at a time, but fragment the heap as much.
    @Test func manyUnprovenConnections() throws {
        let calls = Box(0)
        let connections = UnprovenConnections { calls.withLock { $0 += 1 } }
        let address = try SocketAddress(ipAddress: "10.0.0.1", port: 1)
        func come(_ count: Int) {
            for _ in 0..<count {
                let id = LinkID.next()
                connections.admit(id, from: address) {}
                connections.remove(id)
            }
        }
        come(EarshotLimits.manyUnprovenConnections - 1)
        #expect(calls.value == 0)
        come(1)
        #expect(calls.value == 1)
        come(EarshotLimits.manyUnprovenConnections)
        #expect(calls.value == 2)
    }
}

@Suite struct AcceptBackOffTests {
    /// Counts the reads that reach the socket.
    private final class ReadCounter: ChannelOutboundHandler {
        typealias OutboundIn = any Channel
        var reads = 0
        func read(context: ChannelHandlerContext) { self.reads += 1 }
    }

    private func channel(logger: Logger = quietLogger) throws -> (EmbeddedChannel, ReadCounter) {
        let counter = ReadCounter()
        let channel = EmbeddedChannel()
        try channel.pipeline.syncOperations.addHandlers(
            counter, AcceptBackOffHandler(delay: TimeAmount(EarshotLimits.acceptBackOff), logger: logger))
        return (channel, counter)
    }

    @Test(arguments: [EMFILE, ENFILE, ENOBUFS, ENOMEM]) func acceptBackOff(code: CInt) throws {
        let (channel, counter) = try self.channel()
        channel.read()
        #expect(counter.reads == 1)
        channel.pipeline.fireErrorCaught(IOError(errnoCode: code, reason: "accept"))
        for _ in 0..<10 { channel.read() }
        #expect(counter.reads == 1, "no spin")
        channel.embeddedEventLoop.advanceTime(by: TimeAmount(EarshotLimits.acceptBackOff) - .nanoseconds(1))
        #expect(counter.reads == 1)
        channel.embeddedEventLoop.advanceTime(by: .nanoseconds(1))
        #expect(counter.reads == 2, "accepts again")
        channel.read()
        #expect(counter.reads == 3)
        _ = try? channel.finish()
    }

    @Test(arguments: [(EarshotLimits.acceptWarning - .nanoseconds(1), 1), (EarshotLimits.acceptWarning, 2)])
    func aFailedAcceptWarnsOncePerInterval(pause: Duration, warnings: Int) throws {
        let lines = Box<[String]>([])
        let (channel, _) = try self.channel(logger: Logger(label: "test") { _ in Recorder(lines: lines) })
        channel.pipeline.fireErrorCaught(IOError(errnoCode: EMFILE, reason: "accept"))
        #expect(lines.value.count == 1)
        channel.embeddedEventLoop.advanceTime(by: TimeAmount(pause))
        channel.pipeline.fireErrorCaught(IOError(errnoCode: EMFILE, reason: "accept"))
        #expect(lines.value.count == warnings)
        _ = try? channel.finish()
    }

    @Test func otherErrorsDoNotPause() throws {
        let (channel, counter) = try self.channel()
        channel.pipeline.fireErrorCaught(IOError(errnoCode: ECONNABORTED, reason: "accept"))
        channel.pipeline.fireErrorCaught(ChannelError.ioOnClosedChannel)
        channel.read()
        #expect(counter.reads == 1)
        _ = try? channel.finish()
    }
}
