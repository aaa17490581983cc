import EarshotWire
import Foundation
import Logging
import Testing

@testable import Earshot

/// A state directory whose database was moved away, as is advised for a damaged one: what had been received is not taken for left over.
@Suite(.timeLimit(.minutes(1))) struct NodeLostDatabaseTests {
    @Test func whatWasReceivedIsSetAside() async throws {
        let state = try StateDirectory()
        let (file, tree) = (ResourceID.random().description, ResourceID.random().description)
        let spool = "\(state.path)/spool"
        try FileManager.default.createDirectory(atPath: "\(spool)/complete/\(tree)/tree/a", withIntermediateDirectories: true)
        try Data("x".utf8).write(to: URL(fileURLWithPath: "\(spool)/complete/\(file)"))
        // That of an earlier time.
        try FileManager.default.createDirectory(atPath: "\(spool)/complete-1/old", withIntermediateDirectories: true)

        let logged = Box<[String]>([])
        let bob = try await TestNode("bob", in: state, logger: Logger(label: "bob") { _ in Recorder(lines: logged) })
        #expect(try state.names("spool/complete-2") == [file, tree].sorted())
        #expect(try bob.spoolNames() == [])
        #expect(await bob.node.spool.heldBytes() == 0)
        #expect(logged.value.filter { $0.contains("\(spool)/complete-2") }.count == 1, "\(logged.value)")
        await bob.stop()

        // The database is there by now: what it does not know is left over, and what was set aside stays.
        try Data("x".utf8).write(to: URL(fileURLWithPath: "\(spool)/complete/\(file)"))
        let again = try await TestNode("bob", in: state)
        #expect(try again.spoolNames() == [])
        #expect(try state.names("spool/complete-1") == ["old"])
        #expect(try state.names("spool/complete-2") == [file, tree].sorted())
        #expect(try state.names("spool/complete-2/\(tree)/tree") == ["a"])
        await again.stop()
    }
}
