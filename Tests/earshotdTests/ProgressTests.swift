import EarshotClient
import EarshotWire
import Foundation
import NIOCore
import Testing

@testable import Earshot
@testable import earshotd

/// Transfers, as programs see them that use the daemon.
@Suite(.timeLimit(.minutes(2))) struct ProgressTests {
    /// A size for which the transfer has a connection of its own. Its progress is asked for while no bytes arrive.
    private static let size = 8_000_000

    /// A file that alice's program sends to bob, piece by piece.
    private struct Sending {
        let pieces: AsyncStream<ByteBuffer>.Continuation
        let task: Task<ControlAPI.Resource?, any Error>

        init(_ client: ControlClient, to peer: String) {
            let (stream, pieces) = AsyncStream<ByteBuffer>.makeStream()
            let iterator = Pieces(stream)
            self.pieces = pieces
            self.task = Task {
                try await client.sendResource(
                    to: .peer(peer), name: "x", size: Int64(ProgressTests.size), content: AsyncStreamOfBytes { await iterator.next() }
                ).value.resources.first
            }
        }

        func bring(_ count: Int) { self.pieces.yield(ByteBuffer(repeating: 1, count: count)) }
    }

    /// Asked by one task at a time.
    private actor Pieces {
        private var iterator: AsyncStream<ByteBuffer>.AsyncIterator
        init(_ stream: AsyncStream<ByteBuffer>) { self.iterator = stream.makeAsyncIterator() }
        func next() async -> ByteBuffer? {
            var iterator = self.iterator
            defer { self.iterator = iterator }
            return await iterator.next(isolation: #isolation)
        }
    }

    private func pair(
        _ body: (_ alice: ControlClient, _ bob: ControlClient, _ nodes: (alice: APIServer, bob: APIServer)) async throws -> Void
    ) async throws {
        try await APIServer.pair { alice, bob in
            try await alice.agree(with: bob)
            try await ControlClient.with(socketPath: alice.path) { client in
                try await ControlClient.with(socketPath: bob.path) { try await body(client, $0, (alice, bob)) }
            }
        }
    }

    /// The id of the first transfer that moves.
    private func begun(_ server: APIServer) async throws -> ResourceID {
        for await event in server.node.events.subscribe(since: 0) {
            if case .resourceProgress(let row) = event.kind { return row.id }
        }
        throw EarshotError(.notFound, "nothing has come")
    }

    @Test func fromThePresentStateToTheLast() async throws {
        try await self.pair { alice, bob, nodes in
            let sending = Sending(alice, to: "bob")
            sending.bring(1000)
            let id = try await self.begun(nodes.bob)
            var (one, other) = (alice.progress(of: id).makeAsyncIterator(), bob.progress(of: id).makeAsyncIterator())
            for row in [try await one.next(), try await other.next()] {
                #expect(row?.id == id && row?.state == .known(.transferring) && row?.size == UInt64(Self.size))
            }
            for _ in 1..<8 { sending.bring(1_000_000) }
            sending.bring(999_000)
            sending.pieces.finish()
            var rows: [ControlAPI.Resource] = []
            while let row = try await one.next() { rows.append(row) }
            #expect(rows.last?.state == .known(.completed) && rows.last?.transferred == UInt64(Self.size))
            #expect(rows.dropLast().allSatisfy { $0.state.known?.isFinal == false })
            while let row = try await other.next() { rows.append(row) }
            #expect(rows.last?.state == .known(.completed) && rows.last?.direction == .known(.incoming))
            #expect(try await sending.task.value?.state == .known(.completed))
            // A late reader gets only the last state.
            var late: [Tolerant<ControlAPI.Resource.State>] = []
            for try await row in bob.progress(of: id) { late.append(row.state) }
            #expect(late == [.known(.completed)])
        }
    }

    /// If a program cancels the task that sends a file, the transfer is cancelled, and both sides are told.
    @Test func aSendingThatIsCancelledCancelsTheTransfer() async throws {
        try await self.pair { alice, bob, nodes in
            let sending = Sending(alice, to: "bob")
            sending.bring(1000)
            let id = try await self.begun(nodes.bob)
            var (one, other) = (alice.progress(of: id).makeAsyncIterator(), bob.progress(of: id).makeAsyncIterator())
            _ = (try await one.next(), try await other.next())
            sending.task.cancel()
            let error = await #expect(throws: ControlError.self) { try await sending.task.value }
            #expect(error == .cancelled)
            var last: ControlAPI.Resource?
            while let row = try await one.next() { last = row }
            #expect(last?.state == .known(.cancelled))
            while let row = try await other.next() { last = row }
            #expect(last?.state == .known(.cancelled) && last?.error?.code == "cancelled")
        }
    }

    /// The reading ends with its task; the transfer does not.
    @Test func aReaderThatIsCancelledEnds() async throws {
        try await self.pair { alice, bob, nodes in
            let sending = Sending(alice, to: "bob")
            sending.bring(1000)
            let id = try await self.begun(nodes.bob)
            let (isReading, read) = AsyncStream<Void>.makeStream()
            let reader = Task {
                var progress = bob.progress(of: id).makeAsyncIterator()
                _ = try await progress.next()
                read.finish()
                while try await progress.next() != nil {}
            }
            for await _ in isReading {}
            reader.cancel()
            try await reader.value
            let row = try await bob.resource(id).value
            #expect(row.state == .known(.transferring))
            sending.task.cancel()
            _ = await sending.task.result
        }
    }

    /// Events were missed, of which one may have been the last: the row is read again, though nothing has changed.
    @Test func aGapHasTheRowReadAgain() async throws {
        try await self.pair { alice, bob, nodes in
            let sending = Sending(alice, to: "bob")
            sending.bring(1000)
            let id = try await self.begun(nodes.bob)
            var progress = bob.progress(of: id).makeAsyncIterator()
            _ = try await progress.next()
            let kind = NodeEvent.Kind.discoveryChanged(DiscoveryStatus(backend: .none, state: .off))
            nodes.bob.node.events.append(
                Array(repeating: kind, count: EarshotLimits.eventBacklog + 1), at: Date(), cost: { _ in 1 })
            let row = try await progress.next()
            #expect(row?.id == id && row?.state == .known(.transferring))
            sending.task.cancel()
            _ = await sending.task.result
            var last: ControlAPI.Resource?
            while let row = try await progress.next() { last = row }
            #expect(last?.state == .known(.cancelled))
        }
    }

    @Test func oneThatIsNotThere() async throws {
        try await APIServer.with { server in
            try await ControlClient.with(socketPath: server.path) { client in
                var progress = client.progress(of: ResourceID(high: 0, low: 0)).makeAsyncIterator()
                let error = await #expect(throws: ControlError.self) { try await progress.next() }
                guard case .problem(let problem)? = error else { throw CancellationError() }
                #expect(problem.code == "not-found" && problem.status == 404)
            }
        }
    }

    /// The code that the catalogue shows. A test compares the two.
    private func show(_ path: String, _ client: ControlClient) async throws {
        let request = ControlAPI.ResourceRequest(to: ["bob"], path: path)
        for resource in try await client.sendResource(request).resources {
            for try await now in client.progress(of: resource.id) {
                print(now.state.rawValue, "\(now.transferred) of \(now.size) bytes", now.secondsLeft.map { "\($0) s left" } ?? "")
            }
        }
    }

    @Test func asTheCatalogueShowsIt() async throws {
        try await self.pair { alice, _, nodes in
            let path = "\(nodes.alice.place)/file"
            try Data("hello".utf8).write(to: URL(fileURLWithPath: path))
            try await self.show(path, alice)
            #expect(try await alice.resources().value.resources.map(\.state) == [.known(.completed)])
        }
        let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        let catalogue = tests.deletingLastPathComponent().appending(path: "Sources/EarshotClient/EarshotClient.docc/EarshotClient.md")
        func lines(_ text: String) -> [String] { text.components(separatedBy: "\n").map { $0.trimmingCharacters(in: .whitespaces) } }
        let snippets = try String(contentsOf: catalogue, encoding: .utf8).components(separatedBy: "```swift\n").dropFirst()
        let snippet = snippets.compactMap { $0.components(separatedBy: "\n```").first }.first { $0.hasPrefix("let request = ") }
        let wanted = lines(try #require(snippet, "there is no such snippet"))
        let there = lines(try String(contentsOf: URL(fileURLWithPath: #filePath), encoding: .utf8))
        #expect(there.indices.contains { there[$0...].starts(with: wanted) })
    }
}
