import EarshotWire
import Synchronization
import Testing

@testable import Earshot

/// The thread that verifies and syncs content.
@Suite(.timeLimit(.minutes(1))) struct ContentSettlerTests {
    /// A content of zeros that is read byte by byte, and ends when the test allows it.
    private final class SlowSink: ResourceSink {
        private let begun: AsyncStream<Void>.Continuation?
        private let isOver = Atomic(false)
        private let reads = Atomic(0)
        /// The maximum size, at which the content ends even if nothing runs in between.
        private static let most = 100_000

        init(_ begun: AsyncStream<Void>.Continuation? = nil) { self.begun = begun }

        /// Ends the content, and returns whether it was still being read.
        func end() -> Bool {
            self.isOver.store(true, ordering: .relaxed)
            return self.reads.load(ordering: .relaxed) < Self.most
        }

        func read(into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(EarshotError) -> Int {
            if offset == 0 { self.begun?.yield() }
            guard !self.isOver.load(ordering: .relaxed), self.reads.add(1, ordering: .relaxed).newValue < Self.most else { return 0 }
            buffer[0] = 0
            return 1
        }

        func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(EarshotError) {}
        func length() throws(EarshotError) -> UInt64 { 0 }
        func release() throws(EarshotError) {}
        func sync() throws(EarshotError) {}
    }

    private func content(_ sink: SlowSink) throws -> IncomingContent {
        IncomingContent(sink, id: .random(), size: 1 << 40, hash: try XXH3())
    }

    /// Hashing a large file takes minutes. Small ones are saved and verified in between.
    @Test func nothingWaitsForTheDigestOfAnother() async throws {
        let settler = try ContentSettler()
        let (begun, start) = AsyncStream.makeStream(of: Void.self)
        let (large, small) = (SlowSink(start), SlowSink())
        let content = try self.content(large)
        let other = try self.content(small)
        async let digest = settler.sha256(content)
        for await _ in begun { break }
        try await settler.sync(other)
        _ = small.end()
        #expect(try await settler.sha256(other).count == 32)
        #expect(large.end(), "it was still under way")
        let whole = try await digest
        #expect(whole.count == 32)
    }
}
