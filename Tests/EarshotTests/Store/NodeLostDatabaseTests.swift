import EarshotWire
import Foundation
import Logging
import Testing

@testable import Earshot

/// A state directory whose database was moved away, as recommended for a damaged one. Received content and content that waited to be sent
/// must not count as left over.
@Suite(.timeLimit(.minutes(1))) struct NodeLostDatabaseTests {
    private func node(in state: StateDirectory, _ logged: Box<[String]>) async throws -> TestNode {
        try await TestNode("bob", in: state, logger: Logger(label: "bob") { _ in Recorder(lines: logged) })
    }

    @Test func whatWasThereIsSetAside() async throws {
        let state = try StateDirectory()
        let (file, tree, body) = (ResourceID.random().description, ResourceID.random().description, ResourceID.random().description)
        let spool = "\(state.path)/spool"
        try FileManager.default.createDirectory(atPath: "\(spool)/complete/\(tree)/tree/a", withIntermediateDirectories: true)
        try FileManager.default.createDirectory(atPath: "\(spool)/outgoing", withIntermediateDirectories: true)
        try Data("x".utf8).write(to: URL(fileURLWithPath: "\(spool)/complete/\(file)"))
        try Data("y".utf8).write(to: URL(fileURLWithPath: "\(spool)/outgoing/\(body)"))
        // The content from an earlier incident.
        try FileManager.default.createDirectory(atPath: "\(spool)/complete-1/old", withIntermediateDirectories: true)

        let logged = Box<[String]>([])
        let bob = try await self.node(in: state, logged)
        #expect(try state.names("spool/complete-2") == [file, tree].sorted())
        #expect(try state.names("spool/outgoing-1") == [body])
        #expect(try bob.spoolNames() == [])
        #expect(try state.names("spool/outgoing") == [])
        #expect(await bob.node.spool.heldBytes() == 0)
        let warnings = logged.value.filter { $0.contains("\(spool)/complete-2, \(spool)/outgoing-1") }
        #expect(warnings.count == 1, "\(logged.value)")
        await bob.stop()

        // The database exists now. Content that it does not know is left over, and content that was set aside stays.
        for place in ["complete", "outgoing"] { try Data("x".utf8).write(to: URL(fileURLWithPath: "\(spool)/\(place)/\(file)")) }
        let again = try await TestNode("bob", in: state)
        #expect(try again.spoolNames() == [])
        #expect(try state.names("spool/outgoing") == [])
        #expect(try state.names("spool/complete-1") == ["old"])
        #expect(try state.names("spool/complete-2") == [file, tree].sorted())
        #expect(try state.names("spool/complete-2/\(tree)/tree") == ["a"])
        #expect(try state.names("spool/outgoing-1") == [body])
        await again.stop()
    }

    /// An empty directory is neither moved nor reported.
    @Test(arguments: ["complete", "outgoing"]) func whereThereIsOneOfThemOnlyThatMoves(_ place: String) async throws {
        let state = try StateDirectory()
        let spool = "\(state.path)/spool"
        try FileManager.default.createDirectory(atPath: "\(spool)/\(place)", withIntermediateDirectories: true)
        try Data("x".utf8).write(to: URL(fileURLWithPath: "\(spool)/\(place)/\(ResourceID.random())"))
        let logged = Box<[String]>([])
        let bob = try await self.node(in: state, logged)
        #expect(try state.names("spool").filter { $0.contains("-") } == ["\(place)-1"])
        #expect(logged.value.filter { $0.contains("set aside") }.count == 1, "\(logged.value)")
        await bob.stop()
    }

    @Test func ofAFirstStartNothingIsTold() async throws {
        let state = try StateDirectory()
        let logged = Box<[String]>([])
        let bob = try await self.node(in: state, logged)
        #expect(try state.names("spool") == ["complete", "outgoing", "partial", "publishing"])
        #expect(logged.value.filter { $0.contains("set aside") } == [])
        await bob.stop()
    }
}
