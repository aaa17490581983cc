import EarshotWire
import Foundation
import NIOCore
import NIOEmbedded
import Testing

@testable import Earshot

/// Offers that wait for the user, and received files that are published into a directory.
@Suite(.timeLimit(.minutes(1))) struct NodeOfferTests {
    private func offered(_ node: TestNode, since: UInt64? = 0) async throws -> Resource {
        try await node.event(since: since) { if case .resourceOffered(let row) = $0 { row } else { nil } }
    }

    private func finished(_ node: TestNode, _ id: ResourceID) async throws -> Resource {
        try await node.event { if case .resourceFinished(let row) = $0, row.id == id { row } else { nil } }
    }

    private func file(_ name: String, _ text: String, at node: TestNode) throws -> String {
        let path = "\(node.directory)/\(name)"
        try text.write(toFile: path, atomically: false, encoding: .utf8)
        return path
    }

    /// Sends a text as a file, and returns the last rows of both sides.
    private func send(_ name: String, _ text: String, _ alice: TestNode, _ bob: TestNode) async throws -> (
        sent: Resource, received: Resource
    ) {
        let row = try #require(try await alice.node.sendResource(to: ["bob"], path: self.file(name, text, at: alice)).first)
        return (try await self.finished(alice, row.id), try await self.finished(bob, row.id))
    }

    private func code(_ body: () async throws -> Void) async -> EarshotError.Code? {
        do {
            try await body()
            return nil
        } catch {
            return (error as? EarshotError)?.code
        }
    }

    // MARK: Asking

    @Test func anOfferWaitsUntilItIsAccepted() async throws {
        let (alice, bob) = try await pair(configureBob: { $0.acceptResources = .ask })
        let sent = try #require(try await alice.node.sendResource(to: ["bob"], path: self.file("a", "hello", at: alice)).first)
        let offer = try await self.offered(bob)
        #expect(offer.id == sent.id && offer.state == .offered && offer.size == 5)
        #expect(try await alice.node.resource(sent.id).state == .offered)
        #expect(try bob.spoolNames() == [], "no space is taken before a person wants it")
        #expect(await self.code { _ = try await alice.node.respond(to: sent.id, .accept) } == .conflict)
        #expect(await self.code { _ = try await bob.node.respond(to: .random(), .accept) } == .notFound)
        #expect(try await bob.node.respond(to: offer.id, .accept).state != .offered)
        #expect(try await self.finished(alice, sent.id).state == .completed)
        #expect(try await self.finished(bob, sent.id).inSpool)
        for decision in Resource.Decision.allCases {
            #expect(await self.code { _ = try await bob.node.respond(to: offer.id, decision) } == .conflict)
        }
        await alice.stop()
        await bob.stop()
    }

    @Test func anOfferIsRefused() async throws {
        let (alice, bob) = try await pair(configureBob: { $0.acceptResources = .ask })
        let sent = try #require(try await alice.node.sendResource(to: ["bob"], path: self.file("a", "hello", at: alice)).first)
        let offer = try await self.offered(bob)
        let refused = try await bob.node.respond(to: offer.id, .refuse)
        #expect(refused.state == .cancelled && refused.error == .declined)
        let told = try await self.finished(alice, sent.id)
        #expect(told.state == .failed && told.error == .declined)
        #expect(told.errorMessage == "bob declined it")
        // The session continues, and so do later messages.
        _ = try await alice.send("still here", to: bob)
        await alice.stop()
        await bob.stop()
    }

    @Test func aStreamedBodyWaitsForTheAnswerToo() async throws {
        let (alice, bob) = try await pair(configureBob: { $0.acceptResources = .ask })
        let body = AsyncThrowingStream<ByteBuffer, any Error> {
            $0.yield(ByteBuffer(string: "12345")); $0.finish()
        }
        async let sending = alice.node.sendResource(to: ["bob"], name: "b", size: 5, body: body)
        let offer = try await self.offered(bob)
        _ = try await bob.node.respond(to: offer.id, .refuse)
        var code: EarshotError.Code?
        do { _ = try await sending } catch { code = (error as? EarshotError)?.code }
        #expect(code == .declined)
        await alice.stop()
        await bob.stop()
    }

    @Test func waitingOffersAndRunningOnesAreBounded() async throws {
        let bob = try await TestNode("bob") {
            $0.fromUnknown = .accept
            $0.acceptResources = .ask
        }
        let raw = try await RawPeer(to: bob)
        try await raw.prove()
        let session = try await raw.join()
        var ids: [ResourceID] = []
        for _ in 0..<EarshotLimits.waitingOffers {
            ids.append(.random())
            try await raw.send(raw.offer("x", size: 1, in: session, id: ids[ids.count - 1]))
        }
        let refusal = { try await raw.next { frame in if case .resource(.refuse(let refuse)) = frame { refuse } else { nil } } }
        let tooMany = ResourceID.random()
        try await raw.send(raw.offer("x", size: 1, in: session, id: tooMany))
        let busy = try await refusal()
        #expect(busy.id == tooMany && busy.refusal.code == .busy)
        #expect(await bob.node.resources().count == EarshotLimits.waitingOffers)
        for id in ids.prefix(EarshotLimits.incomingTransfers) { _ = try await bob.node.respond(to: id, .accept) }
        #expect(await self.code { _ = try await bob.node.respond(to: ids[20], .accept) } == .busy)
        #expect(try await bob.node.resource(ids[20]).state == .offered, "it can be accepted later")
        _ = try await bob.node.removeResource(ids[0])
        #expect(try await bob.node.respond(to: ids[20], .accept).state == .transferring)
        await raw.close()
        await bob.stop()
    }

    @Test func whatCannotBeTakenIsRefusedWithoutAsking() async throws {
        let (alice, bob) = try await pair(configureBob: {
            $0.acceptResources = .ask
            $0.quota = 4 * fileRoom(5) - 1
        })
        let (sent, received) = try await self.send("a", "hello", alice, bob)
        #expect(sent.error == .noSpace && received.error == .noSpace)
        await alice.stop()
        await bob.stop()
    }

    // MARK: The directory for received files

    private func received(_ text: String, at row: Resource) throws -> Bool {
        try String(contentsOfFile: try #require(row.path), encoding: .utf8) == text
    }

    @Test func filesArePutIntoTheDirectory() async throws {
        let place = try StateDirectory()
        let (alice, bob) = try await pair(configureBob: { $0.receiveDirectory = place.path })
        chmod(place.path, 0o750)
        let (sent, row) = try await self.send("report.tar.gz", "one", alice, bob)
        #expect(sent.state == .completed)
        #expect(row.path == "\(place.path)/report.tar.gz")
        #expect(try !row.inSpool && self.received("one", at: row))
        #expect(try place.mode("report.tar.gz") == 0o640, "as readable as the directory")
        #expect(try bob.spoolNames() == [])
        #expect(await bob.node.spool.heldBytes() == 0)
        let second = try await self.send("report.tar.gz", "two", alice, bob).received
        #expect(second.path == "\(place.path)/report (2).tar.gz")
        #expect(try self.received("two", at: second) && self.received("one", at: row))
        #expect(await self.code { _ = try await bob.node.resourceContent(row.id) } == .conflict)
        // The row is deleted, and the user's file stays.
        #expect(try await bob.node.removeResource(row.id) == nil)
        #expect(try place.names("") == ["report (2).tar.gz", "report.tar.gz"])
        await alice.stop()
        await bob.stop()
    }

    @Test func aFileReplacesAFileAndNothingElse() async throws {
        let place = try StateDirectory()
        let outside = try StateDirectory()
        try "victim".write(toFile: "\(outside.path)/victim", atomically: false, encoding: .utf8)
        try "old".write(toFile: "\(place.path)/file", atomically: false, encoding: .utf8)
        try FileManager.default.createSymbolicLink(atPath: "\(place.path)/link", withDestinationPath: "\(outside.path)/victim")
        try FileManager.default.createDirectory(atPath: "\(place.path)/folder", withIntermediateDirectories: false)
        let (alice, bob) = try await pair(configureBob: {
            $0.receiveDirectory = place.path
            $0.onNameConflict = .overwrite
        })
        #expect(try self.received("new", at: try await self.send("file", "new", alice, bob).received))
        #expect(try self.received("new", at: try await self.send("link", "new", alice, bob).received))
        #expect(try String(contentsOfFile: "\(outside.path)/victim", encoding: .utf8) == "victim")
        let (sent, kept) = try await self.send("folder", "new", alice, bob)
        #expect(sent.state == .completed, "it is safe with the receiver")
        #expect(kept.state == .completed && kept.inSpool && kept.path == nil && kept.error == .storage)
        #expect(try await bob.node.resourceContent(kept.id).size == 3)
        #expect(try place.names("") == ["file", "folder", "link"])
        #expect(try place.names("folder") == [])
        await alice.stop()
        await bob.stop()
    }

    @Test(arguments: ["file", "dangling", "folder"]) func aTakenNameIsRefused(_ name: String) async throws {
        let place = try StateDirectory()
        try "old".write(toFile: "\(place.path)/file", atomically: false, encoding: .utf8)
        try FileManager.default.createSymbolicLink(atPath: "\(place.path)/dangling", withDestinationPath: "\(place.path)/nowhere")
        try FileManager.default.createDirectory(atPath: "\(place.path)/folder", withIntermediateDirectories: false)
        let (alice, bob) = try await pair(configureBob: {
            $0.receiveDirectory = place.path
            $0.onNameConflict = .skip
        })
        let (sent, received) = try await self.send(name, "new", alice, bob)
        for row in [sent, received] { #expect(row.state == .failed && row.error == .conflict && row.transferred == 0) }
        #expect(sent.errorMessage?.contains("is there already") == true)
        #expect(try self.received("new", at: try await self.send("other", "new", alice, bob).received))
        #expect(try place.names("") == ["dangling", "file", "folder", "other"])
        #expect(try bob.spoolNames() == [])
        await alice.stop()
        await bob.stop()
    }

    /// The name is taken while the bytes arrive.
    @Test func aNameThatIsTakenMeanwhile() async throws {
        let place = try StateDirectory()
        let bob = try await TestNode("bob") {
            $0.fromUnknown = .accept
            $0.receiveDirectory = place.path
            $0.onNameConflict = .skip
        }
        let raw = try await RawPeer(to: bob)
        try await raw.prove()
        let (session, id) = (try await raw.join(), ResourceID.random())
        try await raw.send(raw.offer("x", size: 3, in: session, id: id))
        _ = try await raw.next { if case .resource(.accept(let accept)) = $0 { accept } else { nil } }
        try "first".write(toFile: "\(place.path)/x", atomically: false, encoding: .utf8)
        let hash = try XXH3()
        hash.update(ByteBuffer(string: "abc"))
        try await raw.send(
            .resource(.chunk(ResourceChunk(id: id, offset: 0, data: ByteBuffer(string: "abc")))),
            .resource(.end(ResourceEnd(id: id, algorithm: .xxh3, digest: hash.digest()))))
        let refusal = try await raw.next { if case .resource(.refuse(let refuse)) = $0 { refuse.refusal } else { nil } }
        #expect(refusal.code == .conflict)
        #expect(try String(contentsOfFile: "\(place.path)/x", encoding: .utf8) == "first")
        #expect(try await self.finished(bob, id).error == .conflict)
        #expect(try bob.spoolNames() == [])
        await raw.close()
        await bob.stop()
    }

    @Test func aDirectoryThatIsGoneLeavesTheFileInTheSpool() async throws {
        let place = try StateDirectory()
        let directory = "\(place.path)/in"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: false)
        let (alice, bob) = try await pair(configureBob: { $0.receiveDirectory = directory })
        try FileManager.default.removeItem(atPath: directory)
        let (sent, received) = try await self.send("a", "hello", alice, bob)
        #expect(sent.state == .completed)
        #expect(received.state == .completed && received.inSpool && received.error == .storage)
        #expect(received.errorMessage?.contains("no such file or directory; its content is kept") == true)
        await bob.stop()
        await #expect { _ = try await TestNode("bob", in: bob.state) { $0.receiveDirectory = directory } } throws: {
            ($0 as? EarshotError)?.code == .invalidParameter
        }
        await alice.stop()
    }

    /// A disk that is mounted after the start provides its directory later.
    @Test func aDirectoryThatComesLaterCountsFromThenOn() async throws {
        let place = try StateDirectory()
        let directory = "\(place.path)/in"
        let alice = try await TestNode("alice")
        let bob = try await TestNode("bob", awaiting: directory)
        alice.sees(bob)
        bob.sees(alice)
        try await alice.found(bob)
        try await bob.found(alice)
        try await agree(alice, bob)
        let early = try await self.send("a", "early", alice, bob).received
        #expect(early.state == .completed && early.inSpool && early.error == .storage)
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: false)
        let late = try await self.send("b", "late", alice, bob).received
        #expect(try late.path == "\(directory)/b" && self.received("late", at: late))
        await bob.stop()
        let again = try await TestNode("bob", in: bob.state, awaiting: directory)
        #expect(try await self.finished(again, early.id).path == "\(directory)/a")
        await again.stop()
        await alice.stop()
    }

    /// If the node is killed between any two steps, the row is always true.
    @Test func rowsSurviveARestart() async throws {
        let place = try StateDirectory()
        let (alice, bob) = try await pair(configureBob: { $0.receiveDirectory = place.path })
        let row = try await self.send("a", "hello", alice, bob).received
        await bob.stop()
        let again = try await TestNode("bob", in: bob.state) { $0.receiveDirectory = place.path }
        let kept = try await again.node.resource(row.id)
        #expect(kept.path == "\(place.path)/a" && !kept.inSpool && kept.state == .completed)
        await again.stop()
        await alice.stop()
    }
}
