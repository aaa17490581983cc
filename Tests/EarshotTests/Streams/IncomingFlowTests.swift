import EarshotSafety
import Glibc
import NIOCore
import NIOEmbedded
import Testing

@testable import Earshot

/// The row of a closed stream remains for a while. It must not retain its reader's connection, whose end the reader waits for.
@Suite struct IncomingFlowTests {
    private let flow = IncomingFlow(window: 1024, Timers(on: NIOAsyncTestingEventLoop())) { _ in }

    /// Sets an outlet that only the flow retains, and returns the reader's end of it.
    private func lend() throws -> CInt {
        var ends: [CInt] = [-1, -1]
        try #require(socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0, &ends) == 0)
        self.flow.use(StreamOutlet(try PassedDescriptor(OpenFile(descriptor: ends[0], subject: "the reader"))))
        return ends[1]
    }

    /// Returns whether the other end is closed.
    private func hasEnded(_ reader: CInt) -> Bool {
        var byte: UInt8 = 0
        return recv(reader, &byte, 1, CInt(MSG_DONTWAIT)) == 0
    }

    @Test func theReaderIsKeptWhileTheStreamIsOpen() throws {
        let reader = try self.lend()
        defer { close(reader) }
        self.flow.append(ByteBuffer(string: "x"))
        #expect(!self.hasEnded(reader))
        self.flow.fail(EarshotError(.cancelled, "aborted"))
        #expect(self.hasEnded(reader))
    }

    @Test func theReaderGoesWithTheEnd() async throws {
        let reader = try self.lend()
        defer { close(reader) }
        self.flow.append(ByteBuffer(string: "x"))
        self.flow.finish(at: 1)
        #expect(try await self.flow.next() == ByteBuffer(string: "x"))
        #expect(!self.hasEnded(reader))
        #expect(try await self.flow.next() == nil)
        #expect(self.hasEnded(reader))
    }

    /// The sender ends the stream before the reader's first step.
    @Test func aStreamThatIsOverTakesNoReader() async throws {
        self.flow.fail(EarshotError(.cancelled, "aborted"))
        let reader = try self.lend()
        defer { close(reader) }
        #expect(self.hasEnded(reader))
        await #expect(throws: EarshotError.self) { try await self.flow.next() }
    }

    @Test func whatHasAllItsBytesCanStillFail() async throws {
        let reader = try self.lend()
        defer { close(reader) }
        self.flow.append(ByteBuffer(string: "x"))
        self.flow.finish(at: 1)
        self.flow.fail(EarshotError(.cancelled, "its reader has gone"))
        #expect(self.hasEnded(reader))
    }

    /// Two readers of one stream share its bytes, and both learn of its end. An `AsyncStream` crashed the process in this case.
    @Test func twoReadersShareTheBytesOfOneFlow() async throws {
        let flow = IncomingFlow(window: 1000, Timers(on: NIOAsyncTestingEventLoop())) { _ in }
        let read = { @Sendable () async throws -> Int in
            var count = 0
            while let piece = try await flow.next() { count += piece.readableBytes }
            return count
        }
        async let one = read()
        async let other = read()
        for _ in 0..<100 { flow.append(ByteBuffer(string: "x")) }
        flow.finish(at: 100)
        #expect(try await one + other == 100)
    }
}
