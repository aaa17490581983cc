import NIOCore
import Testing

@testable import Earshot

/// A body like those of HTTP requests: NIO's sequence, which crashes the process if two tasks read it at once. Its producer continues to
/// read with ``reader`` after the call has returned, like the server.
struct SharedBody: AsyncSequence, Sendable {
    typealias Producer = NIOThrowingAsyncSequenceProducer<
        ByteBuffer, any Error, NIOAsyncSequenceProducerBackPressureStrategies.HighLowWatermark, Delegate
    >

    struct Delegate: NIOAsyncSequenceProducerDelegate {
        func produceMore() {}
        func didTerminate() {}
    }

    struct AsyncIterator: AsyncIteratorProtocol {
        let producer: Producer.AsyncIterator
        @concurrent func next() async throws -> ByteBuffer? { try await self.producer.next() }
    }

    /// The only iterator; every reader has a copy.
    nonisolated(unsafe) let reader: Producer.AsyncIterator
    let source: Producer.Source

    init() {
        let made = Producer.makeSequence(
            backPressureStrategy: .init(lowWatermark: 2, highWatermark: 4), finishOnDeinit: true, delegate: Delegate())
        self.source = made.source
        self.reader = made.sequence.makeAsyncIterator()
    }

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(producer: self.reader) }

    func bring(_ text: String) { _ = self.source.yield(ByteBuffer(string: text)) }

    /// Continues reading, as the owner does afterwards. The sequence has ended, because its reader was cancelled.
    @concurrent func isOver() async -> Bool { (try? await self.reader.next()) == nil }
}

@Suite(.timeLimit(.minutes(1))) struct BodyFeedTests {
    @Test func everythingComesInOrder() async throws {
        let feed = BodyFeed()
        let body = AsyncThrowingStream<ByteBuffer, any Error> { feed in
            for number in 0..<1000 { feed.yield(ByteBuffer(integer: number)) }
            feed.finish()
        }
        async let reading: Void = feed.read(body)
        var numbers: [Int] = []
        while var piece = try await feed.next() { numbers.append(piece.readInteger() ?? -1) }
        await reading
        #expect(numbers == Array(0..<1000))
    }

    @Test func aReaderThatWaitsIsWokenByTheTransfersEnd() async throws {
        let feed = BodyFeed()
        let body = SharedBody()
        // The feed takes one piece and holds one. There is no room for the third.
        for text in ["one", "two", "three"] { body.bring(text) }
        async let reading: Void = feed.read(body)
        #expect(try await feed.next() == ByteBuffer(string: "one"))
        feed.close()
        await reading
        await #expect(throws: EarshotError.self) { try await feed.next() }
    }

    @Test func aTransferThatWaitsIsWokenByTheReadersEnd() async throws {
        let feed = BodyFeed()
        let body = SharedBody()
        let reading = Task { await feed.read(body) }
        let waiting = Task { () -> EarshotError.Code? in
            do {
                _ = try await feed.next()
                return nil
            } catch {
                return (error as? EarshotError)?.code
            }
        }
        reading.cancel()
        #expect(await waiting.value == .cancelled)
        await reading.value
        #expect(await body.isOver())
    }

    @Test func aCancelledTransferWaitsForNoPiece() async throws {
        let feed = BodyFeed()
        let waiting = Task { try await feed.next() }
        waiting.cancel()
        await #expect(throws: EarshotError.self) { try await waiting.value }
    }

    @Test func aCancelledReaderThatWaitsForRoomReadsNoMore() async throws {
        let feed = BodyFeed()
        let body = SharedBody()
        body.bring("one")
        body.bring("two")
        let reading = Task { await feed.read(body) }
        #expect(try await feed.next() == ByteBuffer(string: "one"))
        reading.cancel()
        await reading.value
        // Earlier pieces may still be read before the failure.
        let error = await #expect(throws: EarshotError.self) { while try await feed.next() != nil {} }
        #expect(error?.code == .cancelled)
    }
}
