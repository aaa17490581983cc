import EarshotWire
import Foundation
import Testing

@testable import Earshot

/// Received files that were not published before the daemon ended. The next start retries once.
@Suite(.timeLimit(.minutes(1))) struct NodeLeftFileTests {
    /// The state of an earlier run: a node's state with a complete file in its spool.
    private struct Left {
        let state: StateDirectory
        let place: StateDirectory
        let row: Resource

        var directory: String { "\(self.place.path)/in" }

        func makeDirectory() throws {
            try FileManager.default.createDirectory(atPath: self.directory, withIntermediateDirectories: false)
        }

        func write(_ text: String, _ name: String, at time: Date) throws {
            let path = "\(self.directory)/\(name)"
            try text.write(toFile: path, atomically: false, encoding: .utf8)
            try FileManager.default.setAttributes([.modificationDate: time], ofItemAtPath: path)
        }

        func start(_ conflict: NameConflictPolicy = .rename) async throws -> TestNode {
            try await TestNode("bob", in: self.state) {
                $0.receiveDirectory = self.directory
                $0.onNameConflict = conflict
            }
        }

        func names() throws -> [String] { try self.place.names("in") }

        func text(_ name: String) throws -> String { try String(contentsOfFile: "\(self.directory)/\(name)", encoding: .utf8) }
    }

    private func leave(_ name: String = "a.txt", asTree: Bool = false) async throws -> Left {
        let place = try StateDirectory()
        let directory = "\(place.path)/in"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: false)
        let (alice, bob) = try await pair(configureBob: { $0.receiveDirectory = directory })
        try FileManager.default.removeItem(atPath: directory)
        let path = "\(alice.directory)/\(name)"
        if asTree { try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false) }
        try "hello".write(toFile: asTree ? "\(path)/file" : path, atomically: false, encoding: .utf8)
        let sent = try #require(try await alice.node.sendResource(to: ["bob"], path: path).first)
        let row = try await bob.event { if case .resourceFinished(let row) = $0, row.id == sent.id { row } else { nil } }
        #expect(row.isLeft && row.path == nil)
        await bob.stop()
        await alice.stop()
        return Left(state: bob.state, place: place, row: row)
    }

    private func settled(_ node: TestNode, _ id: ResourceID) async throws -> Resource {
        try await node.event { if case .resourceFinished(let row) = $0, row.id == id { row } else { nil } }
    }

    @Test(arguments: [NameConflictPolicy.rename, .overwrite]) func itIsPutInPlaceAtTheNextStart(_ policy: NameConflictPolicy) async throws {
        let left = try await self.leave()
        try left.makeDirectory()
        let bob = try await left.start(policy)
        let row = try await self.settled(bob, left.row.id)
        #expect(row.path == "\(left.directory)/a.txt" && !row.inSpool && row.error == nil && row.errorMessage == nil)
        #expect(row.state == .completed && row.digest == left.row.digest)
        #expect(try left.names() == ["a.txt"])
        #expect(try bob.spoolNames() == [])
        await bob.stop()
        let again = try await left.start()
        #expect(try await again.node.resource(row.id).path == row.path)
        #expect(try left.names() == ["a.txt"])
        await again.stop()
    }

    /// The daemon was killed after publishing the file and before recording it. The file is found, and not published twice.
    @Test(arguments: [NameConflictPolicy.rename, .overwrite]) func whatIsThereAlreadyIsFound(_ policy: NameConflictPolicy) async throws {
        let left = try await self.leave()
        try left.makeDirectory()
        try left.write("older", "a.txt", at: .now)
        try left.write("hello", "a (2).txt", at: .now)
        let bob = try await left.start(policy)
        #expect(try await self.settled(bob, left.row.id).path == "\(left.directory)/a (2).txt")
        #expect(try left.names() == ["a (2).txt", "a.txt"])
        #expect(try bob.spoolNames() == [])
        await bob.stop()
    }

    @Test func anEqualFileOfBeforeIsAnother() async throws {
        let left = try await self.leave()
        try left.makeDirectory()
        try left.write("hello", "a.txt", at: .now.addingTimeInterval(-60))
        try FileManager.default.createSymbolicLink(atPath: "\(left.directory)/a (2).txt", withDestinationPath: "a.txt")
        try #require(mkfifo("\(left.directory)/a (3).txt", 0o600) == 0)
        let bob = try await left.start()
        #expect(try await self.settled(bob, left.row.id).path == "\(left.directory)/a (4).txt")
        await bob.stop()
    }

    /// A file that now has the name may be newer, or may have been changed.
    @Test func whatMayBeNewerIsNotReplaced() async throws {
        let left = try await self.leave()
        try left.makeDirectory()
        try left.write("newer", "a.txt", at: .now)
        let bob = try await left.start(.overwrite)
        #expect(try await self.settled(bob, left.row.id).path == "\(left.directory)/a (2).txt")
        #expect(try left.text("a.txt") == "newer" && left.text("a (2).txt") == "hello")
        #expect(try left.names() == ["a (2).txt", "a.txt"])
        #expect(try bob.spoolNames() == [])
        await bob.stop()
    }

    @Test func aDirectoryThatMayBeNewerIsNotReplaced() async throws {
        let left = try await self.leave("a", asTree: true)
        try left.makeDirectory()
        try FileManager.default.createDirectory(atPath: "\(left.directory)/a", withIntermediateDirectories: false)
        try left.write("newer", "a/file", at: .now)
        let bob = try await left.start(.overwrite)
        #expect(try await self.settled(bob, left.row.id).path == "\(left.directory)/a (2)")
        #expect(try left.text("a/file") == "newer" && left.text("a (2)/file") == "hello")
        #expect(try left.names() == ["a", "a (2)"])
        await bob.stop()
    }

    /// The sender may have been told that the file was received, so it is not dropped.
    @Test func aTakenNameLeavesItInTheSpool() async throws {
        let left = try await self.leave()
        try left.makeDirectory()
        try left.write("other", "a.txt", at: .now)
        let bob = try await left.start(.skip)
        // Later work follows it in the publisher's queue.
        var row = try await bob.node.resource(left.row.id)
        while row.error != .conflict {
            try await Task.sleep(for: .milliseconds(5))
            row = try await bob.node.resource(left.row.id)
        }
        #expect(row.state == .completed && row.inSpool && row.path == nil)
        #expect(row.errorMessage?.contains("its content is kept") == true)
        #expect(try left.names() == ["a.txt"])
        await bob.stop()
        let again = try await TestNode("bob", in: left.state)
        #expect(try await again.node.resourceContent(row.id).size == 5, "without a directory it can be fetched")
        #expect(try await again.node.resource(row.id).error == .conflict)
        await again.stop()
    }

    /// A file that was received without a configured directory was not meant for one.
    @Test func aFileWithoutADirectoryStaysWhereItIs() async throws {
        let place = try StateDirectory()
        let (alice, bob) = try await pair()
        let path = "\(alice.directory)/a"
        try "hello".write(toFile: path, atomically: false, encoding: .utf8)
        let sent = try #require(try await alice.node.sendResource(to: ["bob"], path: path).first)
        let row = try await self.settled(bob, sent.id)
        #expect(row.inSpool && !row.isLeft)
        await bob.stop()
        let again = try await TestNode("bob", in: bob.state) { $0.receiveDirectory = place.path }
        #expect(try await again.node.resourceContent(row.id).size == 5)
        await again.stop()
        await alice.stop()
    }
}
