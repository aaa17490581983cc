import EarshotWire
import Foundation
import NIOCore
import OrderedCollections
import Testing

@testable import Earshot
@testable import EarshotCore

/// Streams that move to their own data connection, between two nodes on loopback.
@Suite(.timeLimit(.minutes(1))) struct NodeStreamRouteTests {
    /// A stream between the nodes that has moved after its reader has taken some bytes.
    private struct Moved {
        let sender: TestNode
        let receiver: TestNode
        let body: ScriptedBody
        let opened: Task<ByteStream, any Error>
        let content: StreamContent

        var transfer: TransferID { TransferID(self.content.stream.id) }

        func end() async {
            await self.sender.stop()
            await self.receiver.stop()
        }

        /// Takes all bytes from `taken`, which are those of `NodeDataTests.content`.
        func expectRest(from taken: Int, to size: Int) async throws {
            var whole = ByteBuffer()
            while let piece = try await self.content.next() { whole.writeImmutableBuffer(piece) }
            #expect(Data(whole.readableBytesView) == NodeDataTests.content(size).dropFirst(taken))
            try await self.content.finish()
            let row = try await self.opened.value
            #expect(row.error == nil && row.transferred == UInt64(size))
        }
    }

    private static let first = Int(EarshotLimits.streamRerouteAfter) + 12_345

    private func feed(_ body: ScriptedBody, _ range: Range<Int>) {
        let all = NodeDataTests.content(range.upperBound)
        var at = range.lowerBound
        while at < range.upperBound {
            let count = min(70_001, range.upperBound - at)
            body.feed.yield(ByteBuffer(bytes: all[at..<at + count]))
            at += count
        }
    }

    /// An inlet that takes its bytes from a data connection.
    private var reading: StreamInlet {
        var inlet = StreamInlet()
        inlet.asked()
        _ = inlet.opened(true)
        _ = inlet.rerouted()
        return inlet
    }

    private func moved(_ encryption: EncryptionPreference = .required, fromInitiator: Bool = true) async throws -> Moved {
        let (alice, bob) = try await pair(configureAlice: { $0.encryption = encryption }, configureBob: { $0.encryption = encryption })
        let (sender, receiver) = fromInitiator ? (alice, bob) : (bob, alice)
        let body = ScriptedBody()
        self.feed(body, 0..<Self.first)
        let opened = Task { try await sender.open("x", to: receiver, body) }
        let content = try await receiver.node.acceptNextStream()
        var taken = 0
        while taken < Self.first { taken += try #require(try await content.next()).readableBytes }
        try await eventually("it has moved") { await receiver.node.core.streams[content.stream.id]?.inlet == self.reading }
        #expect(await sender.node.core.dataPathCount == 1)
        return Moved(sender: sender, receiver: receiver, body: body, opened: opened, content: content)
    }

    private func expectNoRoutes(_ moved: Moved) async throws {
        for node in [moved.sender, moved.receiver] {
            try await eventually("no data connection is left") { await node.node.core.dataPathCount == 0 }
            #expect(await node.node.transport.tickets.count == 0)
        }
    }

    @Test(arguments: [EncryptionPreference.required, .none], [true, false])
    func aLargeStream(_ encryption: EncryptionPreference, _ fromInitiator: Bool) async throws {
        let moved = try await self.moved(encryption, fromInitiator: fromInitiator)
        self.feed(moved.body, Self.first..<5_000_001)
        moved.body.feed.finish()
        try await moved.expectRest(from: Self.first, to: 5_000_001)
        try await self.expectNoRoutes(moved)
        await moved.end()
    }

    /// A reader that does not read also stops the writer there after one window.
    @Test func aReaderThatPauses() async throws {
        let moved = try await self.moved()
        let size = Self.first + 4_000_000
        self.feed(moved.body, Self.first..<size)
        moved.body.feed.finish()
        let id = moved.content.stream.id
        var last: UInt64 = 0
        try await eventually("nothing moves any more") {
            let now = try await moved.sender.node.stream(id).transferred
            defer { last = now }
            return now == last && now > UInt64(Self.first)
        }
        #expect(last <= UInt64(Self.first) + EarshotLimits.streamWindow)
        try await moved.expectRest(from: Self.first, to: size)
        await moved.end()
    }

    /// The stream continues over the control connection, without losing or repeating a byte.
    @Test(arguments: [true, false], [true, false]) func aStreamOutlivesItsDataConnection(atTheSender: Bool, reading: Bool) async throws {
        let moved = try await self.moved()
        let size = Self.first + 4_000_000
        self.feed(moved.body, Self.first..<size)
        moved.body.feed.finish()
        var taken = Self.first
        if reading { taken += try #require(try await moved.content.next()).readableBytes }
        let node = atTheSender ? moved.sender.node : moved.receiver.node
        try #require(await node.dataConnections[moved.transfer]).close()
        try await moved.expectRest(from: taken, to: size)
        try await self.expectNoRoutes(moved)
        await moved.end()
    }

    /// The connection is lost while the writer is idle. The writer continues later.
    @Test func lostWhileIdle() async throws {
        let moved = try await self.moved()
        try #require(await moved.receiver.node.dataConnections[moved.transfer]).close()
        try await self.expectNoRoutes(moved)
        self.feed(moved.body, Self.first..<Self.first + 10)
        #expect(try await moved.content.next()?.readableBytes == 10)
        moved.body.feed.finish()
        try await moved.expectRest(from: Self.first + 10, to: Self.first + 10)
        await moved.end()
    }

    /// Aborted by its reader, by its writer, and by the loss of its peer.
    @Test(arguments: ["reader", "writer", "peer"]) func anAbortedStreamRetainsNoDataConnection(by who: String) async throws {
        let moved = try await self.moved()
        weak let sent = await moved.sender.node.dataConnections[moved.transfer]
        weak let received = await moved.receiver.node.dataConnections[moved.transfer]
        #expect(sent != nil && received != nil)
        switch who {
        case "reader": moved.content.abandon()
        case "writer": moved.body.feed.finish(throwing: ChannelError.eof)
        default: try await moved.sender.node.connection(to: moved.receiver.node.id)?.channel.close().get()
        }
        let code = who == "peer" ? EarshotError.Code.unavailable : .cancelled
        await #expect { try await moved.opened.value } throws: { ($0 as? EarshotError)?.code == code }
        await #expect { while try await moved.content.next() != nil {} } throws: { ($0 as? EarshotError)?.code == code }
        try await self.expectNoRoutes(moved)
        // The sent bytes, which go with the connection, are not retained either: the stream's row stays for a while.
        try await eventually("the closed stream's row keeps no connection") { sent == nil && received == nil }
        for node in [moved.sender, moved.receiver] { #expect(try await node.node.stream(moved.content.stream.id).state == .closed) }
        await moved.end()
    }

    /// More streams than may ask at once. All of them move.
    @Test func fiveAtOnce() async throws {
        let (alice, bob) = try await pair()
        let bodies = (0..<5).map { _ in ScriptedBody() }
        var opened: [Task<ByteStream, any Error>] = []
        var contents: [StreamContent] = []
        for (number, body) in bodies.enumerated() {
            self.feed(body, 0..<Self.first)
            opened.append(Task { try await alice.open("\(number)", to: bob, body) })
            contents.append(try await bob.node.acceptNextStream(name: "\(number)"))
        }
        for content in contents {
            var taken = 0
            while taken < Self.first { taken += try #require(try await content.next()).readableBytes }
        }
        for content in contents {
            try await eventually("it has moved") { await bob.node.core.streams[content.stream.id]?.inlet == self.reading }
        }
        for (body, content) in zip(bodies, contents) {
            self.feed(body, Self.first..<Self.first + 100_000)
            body.feed.finish()
            #expect(try await content.all().utf8.count > 0)
            try await content.finish()
        }
        for stream in opened { #expect(try await stream.value.transferred == UInt64(Self.first) + 100_000) }
        await alice.stop()
        await bob.stop()
    }
}
