import EarshotWire
import Foundation
import NIOCore
import OrderedCollections
import Testing

@testable import Earshot
@testable import EarshotCore

/// A body whose pieces come from the test, at its own pace.
struct ScriptedBody: AsyncSequence, Sendable {
    private let stream: AsyncThrowingStream<ByteBuffer, any Error>
    let feed: AsyncThrowingStream<ByteBuffer, any Error>.Continuation

    init(_ pieces: String...) {
        (self.stream, self.feed) = AsyncThrowingStream.makeStream()
        for piece in pieces { self.feed.yield(ByteBuffer(string: piece)) }
    }

    func makeAsyncIterator() -> AsyncThrowingStream<ByteBuffer, any Error>.AsyncIterator { self.stream.makeAsyncIterator() }
}

extension StreamContent {
    /// Returns all bytes to the end.
    func all() async throws -> String {
        var whole = ByteBuffer()
        while let piece = try await self.next() { whole.writeImmutableBuffer(piece) }
        return String(buffer: whole)
    }
}

extension TestNode {
    func streamClosed() async throws -> ByteStream {
        try await self.event { if case .streamClosed(let row) = $0 { row } else { nil } }
    }

    func streamWaits() async throws -> ByteStream {
        try await self.event { if case .streamOpened(let row) = $0 { row } else { nil } }
    }

    func open(_ name: String, to other: TestNode, _ body: ScriptedBody) async throws -> ByteStream {
        try await self.node.openStream(to: other.node.id.description, name: name, body: body)
    }
}

@Suite(.timeLimit(.minutes(1))) struct NodeStreamTests {
    private func end(_ alice: TestNode, _ bob: TestNode) async {
        await alice.stop()
        await bob.stop()
    }

    /// A body that cannot throw is accepted too.
    @Test func aBodyThatCannotFail() async throws {
        let (alice, bob) = try await pair()
        async let accepted = bob.node.acceptNextStream(name: "x")
        let (body, feed) = AsyncStream<ByteBuffer>.makeStream()
        for word in ["hello, ", "bob"] { feed.yield(ByteBuffer(string: word)) }
        feed.finish()
        async let opened = alice.node.openStream(to: bob.node.id.description, name: "x", body: body)
        let content = try await accepted
        #expect(try await content.all() == "hello, bob")
        try await content.finish()
        #expect(try await opened.error == nil)
        await self.end(alice, bob)
    }

    @Test func anAcceptorMayComeBeforeItsStream() async throws {
        let (alice, bob) = try await pair()
        async let accepted = bob.node.acceptNextStream(name: "x")
        let body = ScriptedBody("hello, ", "bob")
        body.feed.finish()
        async let opened = alice.open("x", to: bob, body)
        let content = try await accepted
        #expect(content.stream.name == "x" && content.stream.peerID == alice.node.id && content.stream.direction == .incoming)
        #expect(try await content.all() == "hello, bob")
        try await content.finish()
        let row = try await opened
        #expect(row.state == .closed && row.error == nil && row.transferred == 10)
        let far = try await bob.streamClosed()
        #expect(far.id == row.id && far.error == nil && far.transferred == 10)
        await self.end(alice, bob)
    }

    /// Received bytes are passed on immediately, and the sender learns of the end only when the reader reports it.
    @Test func openerFirstAndByteByByte() async throws {
        let (alice, bob) = try await pair()
        let body = ScriptedBody("a")
        async let opened = alice.open("x", to: bob, body)
        let waiting = try await bob.streamWaits()
        #expect(waiting.state == .opening)
        let content = try await bob.node.acceptStream(waiting.id)
        #expect(try await content.next() == ByteBuffer(string: "a"))
        body.feed.yield(ByteBuffer(string: "b"))
        #expect(try await content.next() == ByteBuffer(string: "b"))
        body.feed.finish()
        #expect(try await content.next() == nil)
        #expect(await alice.node.openStreams().map(\.state) == [.open])
        try await content.finish()
        #expect(try await opened.error == nil)
        await self.end(alice, bob)
    }

    /// A reader that does not read stops the writer after one window.
    @Test func aReaderThatPausesHoldsTheWriterUp() async throws {
        let (alice, bob) = try await pair()
        let body = ScriptedBody()
        let piece = ByteBuffer(repeating: 7, count: 100_000)
        for _ in 0..<100 { body.feed.yield(piece) }
        body.feed.finish()
        async let opened = alice.open("x", to: bob, body)
        let content = try await bob.node.acceptStream(try await bob.streamWaits().id)
        let window = EarshotLimits.streamWindow
        try await eventually("the window is full") { await alice.node.openStreams().first?.transferred == window }
        // Messages overtake the stream.
        #expect(try await alice.send("quick", to: bob).recipients.map(\.status) == [.delivered])
        #expect(await alice.node.openStreams().first?.transferred == window)
        #expect(try await content.all().utf8.count == 10_000_000)
        try await content.finish()
        #expect(try await opened.transferred == 10_000_000)
        await self.end(alice, bob)
    }

    @Test func abortedByTheReader() async throws {
        let (alice, bob) = try await pair()
        let body = ScriptedBody("a")
        let opened = Task { try await alice.open("x", to: bob, body) }
        let content = try await bob.node.acceptStream(try await bob.streamWaits().id)
        _ = try await content.next()
        content.abandon()
        // The body is idle, and the writer still learns of it.
        await #expect { try await opened.value } throws: { ($0 as? EarshotError)?.code == .cancelled }
        #expect(try await alice.streamClosed().error == .cancelled)
        #expect(try await bob.streamClosed().error == .cancelled)
        await self.end(alice, bob)
    }

    @Test func abortedByTheWriter() async throws {
        let (alice, bob) = try await pair()
        for breaks in [true, false] {
            let body = ScriptedBody("a")
            let opened = Task { try await alice.open("x", to: bob, body) }
            let content = try await bob.node.acceptNextStream()
            _ = try await content.next()
            if breaks { body.feed.finish(throwing: ChannelError.eof) } else { opened.cancel() }
            await #expect { try await content.next() } throws: { ($0 as? EarshotError)?.code == .cancelled }
            await #expect { try await content.finish() } throws: { ($0 as? EarshotError)?.code == .cancelled }
            await #expect { try await opened.value } throws: { ($0 as? EarshotError)?.code == .cancelled }
        }
        await self.end(alice, bob)
    }

    @Test func abortedByAThirdParty() async throws {
        let (alice, bob) = try await pair()
        let body = ScriptedBody("a")
        let opened = Task { try await alice.open("x", to: bob, body) }
        let content = try await bob.node.acceptNextStream()
        #expect(try await bob.node.removeStream(content.stream.id)?.state == .closed)
        #expect(try await bob.node.removeStream(content.stream.id) == nil)
        await #expect { try await bob.node.removeStream(content.stream.id) } throws: { ($0 as? EarshotError)?.code == .notFound }
        await #expect { try await opened.value } throws: { ($0 as? EarshotError)?.code == .cancelled }
        await self.end(alice, bob)
    }

    @Test func aLostConnectionEndsItOnBothSides() async throws {
        let (alice, bob) = try await pair()
        let body = ScriptedBody("a")
        let opened = Task { try await alice.open("x", to: bob, body) }
        let content = try await bob.node.acceptNextStream()
        _ = try await content.next()
        try await alice.node.connection(to: bob.node.id)?.channel.close().get()
        await #expect { try await content.next() } throws: { ($0 as? EarshotError)?.code == .unavailable }
        await #expect { try await opened.value } throws: { ($0 as? EarshotError)?.code == .unavailable }
        await self.end(alice, bob)
    }

    /// A stream that is not accepted yet survives a lost connection: it is opened again on the next one.
    @Test func whatWaitsSurvivesALostConnection() async throws {
        let (alice, bob) = try await pair()
        let body = ScriptedBody("a")
        body.feed.finish()
        let opened = Task { try await alice.open("x", to: bob, body) }
        let waiting = try await bob.streamWaits()
        try await alice.node.connection(to: bob.node.id)?.channel.close().get()
        _ = try await bob.streamClosed()
        let content = try await bob.node.acceptNextStream(name: "x")
        #expect(content.stream.id == waiting.id)
        #expect(try await content.all() == "a")
        try await content.finish()
        #expect(try await opened.value.error == nil)
        await self.end(alice, bob)
    }

    @Test func theEndOfTheSessionEndsIt() async throws {
        let (alice, bob) = try await pair()
        let body = ScriptedBody("a")
        let opened = Task { try await alice.open("x", to: bob, body) }
        let content = try await bob.node.acceptNextStream()
        try await bob.node.leave(try #require(await bob.node.sessions().first).id)
        await #expect { try await opened.value } throws: { ($0 as? EarshotError)?.code == .cancelled }
        _ = content
        await self.end(alice, bob)
    }

    @Test func aCallerThatGoesWaitsNoMore() async throws {
        let bob = try await TestNode("bob")
        let waiting = Task { try await bob.node.acceptNextStream() }
        try await eventually("it waits") { await bob.node.core.streams.acceptors.count == 1 }
        waiting.cancel()
        await #expect { try await waiting.value } throws: { ($0 as? EarshotError)?.code == .cancelled }
        #expect(await bob.node.core.streams.acceptors.isEmpty)
        await bob.stop()
    }

    @Test func stoppingEndsThemAndWhoWaits() async throws {
        let (alice, bob) = try await pair()
        let waiting = Task { try await bob.node.acceptNextStream() }
        try await eventually("it waits") { await bob.node.core.streams.acceptors.count == 1 }
        bob.node.endStreams()
        await #expect { try await waiting.value } throws: { ($0 as? EarshotError)?.code == .unavailable }
        let body = ScriptedBody("a")
        await #expect { try await alice.open("x", to: bob, body) } throws: { ($0 as? EarshotError)?.code == .unavailable }
        await self.end(alice, bob)
    }
}
