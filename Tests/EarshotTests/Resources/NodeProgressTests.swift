import EarshotCoding
import EarshotWire
import Foundation
import NIOCore
import Testing

@testable import Earshot

/// Transfers for the readers of their progress.
@Suite(.timeLimit(.minutes(1))) struct NodeProgressTests {
    /// A peer with frames from the test has started to send a file of 10 bytes to a node. The node has accepted it, and no byte has
    /// arrived.
    private func begun(_ body: (_ raw: RawPeer, _ bob: TestNode, _ id: ResourceID) async throws -> Void) async throws {
        let bob = try await TestNode("bob") { $0.fromUnknown = .accept }
        let raw = try await RawPeer(to: bob)
        let result: Result<Void, any Error>
        do {
            try await raw.prove()
            let (session, id) = (try await raw.join(), ResourceID.random())
            try await raw.send(raw.offer("x", size: 10, in: session, id: id))
            _ = try await raw.next { if case .resource(.accept(let accept)) = $0 { accept } else { nil } }
            result = .success(try await body(raw, bob, id))
        } catch {
            result = .failure(error)
        }
        await raw.close()
        await bob.stop()
        try result.get()
    }

    private func cancel(_ raw: RawPeer, _ id: ResourceID, at bob: TestNode) async throws {
        try await raw.send(.resource(.cancel(ResourceRefuse(id: id, refusal: Refusal(code: .cancelled)))))
        try await bob.event { if case .resourceFinished(let row) = $0, row.id == id { () } else { nil } }
    }

    /// Adds more events than the log keeps, so that a waiting reader misses all earlier ones.
    private func flood(_ log: EventLog) {
        let kind = NodeEvent.Kind.discoveryChanged(DiscoveryStatus(backend: .none, state: .off))
        log.append(Array(repeating: kind, count: EarshotLimits.eventBacklog + 1), at: Date(), cost: { _ in 1 })
    }

    @Test func fromThePresentStateToTheLast() async throws {
        try await self.begun { raw, bob, id in
            var progress = bob.node.progress(of: id).makeAsyncIterator()
            let first = try #require(try await progress.next())
            #expect(first.id == id && first.state == .transferring && first.transferred == 0 && first.size == 10)
            await raw.close()
            #expect(try await progress.next()?.state == .paused)
            #expect(try await bob.node.removeResource(id)?.state == .cancelled)
            let last = try #require(try await progress.next())
            #expect(last.state == .cancelled && last.error == .cancelled)
            #expect(try await progress.next() == nil)
            // A new reader gets only the last state.
            var states: [Resource.State] = []
            for try await row in bob.node.progress(of: id) { states.append(row.state) }
            #expect(states == [.cancelled])
        }
    }

    @Test func bothSidesOfAWholeFile() async throws {
        let (alice, bob) = try await pair()
        let path = "\(alice.directory)/file"
        try Data(repeating: 1, count: 3_000_000).write(to: URL(fileURLWithPath: path))
        let sent = try #require(try await alice.node.sendResource(to: ["bob"], path: path).first)
        for node in [alice.node, bob.node] {
            var rows: [Resource] = []
            if node.id == bob.node.id {
                try await bob.event { if case .resourceOffered(let row) = $0, row.id == sent.id { () } else { nil } }
            }
            for try await row in node.progress(of: sent.id) { rows.append(row) }
            #expect(rows.last?.state == .completed && rows.last?.transferred == 3_000_000)
            #expect(rows.dropLast().allSatisfy { !$0.state.isFinal })
            #expect(rows.map(\.transferred) == rows.map(\.transferred).sorted())
        }
        await alice.stop()
        await bob.stop()
    }

    @Test func oneThatIsNotThere() async throws {
        try await self.begun { raw, bob, id in
            var unknown = bob.node.progress(of: .random()).makeAsyncIterator()
            let error = await #expect(throws: EarshotError.self) { try await unknown.next() }
            #expect(error?.code == .notFound)
            // A transfer is deleted while its reader is not waiting.
            var progress = bob.node.progress(of: id).makeAsyncIterator()
            _ = try await progress.next()
            try await self.cancel(raw, id, at: bob)
            #expect(try await bob.node.removeResource(id) == nil)
            self.flood(bob.node.events)
            let gone = await #expect(throws: EarshotError.self) { try await progress.next() }
            #expect(gone?.code == .notFound)
        }
    }

    /// The events of the end were missed, but the row shows it.
    @Test func aGapHidesNoEnd() async throws {
        try await self.begun { raw, bob, id in
            var progress = bob.node.progress(of: id).makeAsyncIterator()
            #expect(try await progress.next()?.transferred == 0)
            self.flood(bob.node.events)
            #expect(try await progress.next()?.state == .transferring)
            try await self.cancel(raw, id, at: bob)
            self.flood(bob.node.events)
            #expect(try await progress.next()?.state == .cancelled)
            #expect(try await progress.next() == nil)
        }
    }

    /// Reading ends with its task, and the transfer continues.
    @Test func aReaderThatIsCancelledEnds() async throws {
        try await self.begun { raw, bob, id in
            let (isReading, read) = AsyncStream<Void>.makeStream()
            let reader = Task {
                var progress = bob.node.progress(of: id).makeAsyncIterator()
                _ = try await progress.next()
                read.finish()
                return try await progress.next() == nil
            }
            for await _ in isReading {}
            reader.cancel()
            let (isOver, row) = (try await reader.value, try await bob.node.resource(id))
            #expect(isOver && row.state == .transferring)
        }
    }

    @Test func itEndsWithTheNode() async throws {
        try await self.begun { raw, bob, id in
            var progress = bob.node.progress(of: id).makeAsyncIterator()
            _ = try await progress.next()
            await bob.stop()
            while let row = try await progress.next() { #expect(!row.state.isFinal) }
        }
    }

    /// The catalogue shows this function, and a test compares the two.
    private func show(_ path: String, _ node: Node) async throws {
        for resource in try await node.sendResource(to: ["bob"], path: path) {
            for try await now in node.progress(of: resource.id) {
                print(now.state, "\(now.transferred) of \(now.size) bytes", now.secondsLeft.map { "\($0) s left" } ?? "")
            }
        }
    }

    @Test func asTheCatalogueShowsIt() async throws {
        let (alice, bob) = try await pair()
        let path = "\(alice.directory)/file"
        try Data("hello".utf8).write(to: URL(fileURLWithPath: path))
        try await self.show(path, alice.node)
        #expect(await alice.node.resources().map(\.state) == [.completed])
        await alice.stop()
        await bob.stop()
        try expectSnippet(of: #filePath, in: "Earshot/Earshot.docc/Earshot.md", from: "for resource in try await node.sendResource")
    }
}

/// Checks that a snippet in a catalogue, identified by its beginning, equals the lines of a test's source, which were compiled and run.
func expectSnippet(of source: String, in catalogue: String, from start: String) throws {
    // Tests/EarshotTests/FOLDER/FILE
    let root = (0..<4).reduce(URL(fileURLWithPath: source)) { place, _ in place.deletingLastPathComponent() }
    let article = try String(contentsOf: root.appending(path: "Sources/\(catalogue)"), encoding: .utf8)
    let snippet = article.components(separatedBy: "```swift\n").dropFirst().compactMap { $0.components(separatedBy: "\n```").first }
        .first { $0.hasPrefix(start) }
    func lines(_ text: String) -> [String] { text.components(separatedBy: "\n").map { $0.trimmingCharacters(in: .whitespaces) } }
    let wanted = lines(try #require(snippet, "there is no such snippet"))
    let there = lines(try String(contentsOf: URL(fileURLWithPath: source), encoding: .utf8))
    #expect(there.indices.contains { there[$0...].starts(with: wanted) })
}
