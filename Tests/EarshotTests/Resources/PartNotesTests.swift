import EarshotSafety
import Foundation
import Glibc
import Testing

@testable import Earshot

/// A killed daemon's unfinished parts in a user's directory are removed at its next start, and nothing else is.
@Suite struct PartNotesTests {
    private let place: StateDirectory
    private let notes: StateDirectory
    private let part: PartNotes

    init() throws {
        self.place = try StateDirectory()
        self.notes = try StateDirectory()
        self.part = PartNotes(directory: try SafeDirectory(path: self.notes.path))
    }

    private func noted() throws -> String { try self.part.add(in: try SafeDirectory(path: self.place.path)).description }

    private func put(_ name: String, _ text: String = "half") throws {
        try text.write(toFile: "\(self.place.path)/\(name)", atomically: false, encoding: .utf8)
    }

    @Test func filesAndTreesThatAreNotedGo() throws {
        let (file, tree, link) = (try self.noted(), try self.noted(), try self.noted())
        try self.put(file)
        try FileManager.default.createDirectory(atPath: "\(self.place.path)/\(tree)/a/b", withIntermediateDirectories: true)
        try self.put("\(tree)/a/b/c")
        try #require(chmod("\(self.place.path)/\(tree)/a", 0) == 0)
        // A replaced entry may have been a link. The link is removed, but not its target.
        try self.put("precious")
        try FileManager.default.createSymbolicLink(atPath: "\(self.place.path)/\(link)", withDestinationPath: "precious")
        let foreign = try PartName.random().description
        for name in [foreign, "report.pdf", ".earshot-\(UUID().uuidString.lowercased()).part"] { try self.put(name) }
        let before = try self.place.names("")
        #expect(self.part.removeParts() == 3)
        #expect(try self.place.names("") == before.filter { ![file, tree, link].contains($0) })
        #expect(try self.notes.names("") == [])
        #expect(self.part.removeParts() == 0)
    }

    @Test func aNoteGoesWithWhatItIsAbout() throws {
        let directory = try SafeDirectory(path: self.place.path)
        let name = try self.part.add(in: directory)
        try self.put(name.description)
        self.part.settle(name, in: directory)
        #expect(try self.notes.names("") == [name.description], "the next start has to know")
        try FileManager.default.removeItem(atPath: "\(self.place.path)/\(name)")
        self.part.settle(name, in: directory)
        #expect(try self.notes.names("") == [])
    }

    /// The disk may not be mounted.
    @Test func aNoteWaitsForItsDirectory() throws {
        let gone = try self.noted()
        let away = "\(self.place.path)-away"
        try self.put(gone)
        try #require(rename(self.place.path, away) == 0)
        let noted = try self.modified(gone)
        let age = Int(EarshotLimits.partNoteAge / .seconds(1))
        #expect(self.part.removeParts(now: noted + age - 1) == 0)
        #expect(try self.notes.names("") == [gone])
        try #require(rename(away, self.place.path) == 0)
        #expect(self.part.removeParts(now: noted + age - 1) == 1)
        #expect(try self.place.names("") == [] && self.notes.names("") == [])
    }

    @Test(arguments: [true, false]) func aNoteThatIsTooOldGoes(_ isThere: Bool) throws {
        let name = try self.noted()
        if !isThere { try #require(rmdir(self.place.path) == 0) }
        let age = Int(EarshotLimits.partNoteAge / .seconds(1))
        #expect(self.part.removeParts(now: try self.modified(name) + age - 1) == 0)
        #expect(try self.notes.names("") == [name])
        #expect(self.part.removeParts(now: try self.modified(name) + age) == 0)
        #expect(try self.notes.names("") == [])
    }

    private func modified(_ name: String) throws -> Int {
        try #require(FileStatus(path: "\(self.notes.path)/\(name)")?.modified.first)
    }

    /// Other files among the notes are ignored.
    @Test func onlyNotesAreRead() throws {
        try self.put("report.pdf")
        try self.place.path.write(toFile: "\(self.notes.path)/report.pdf", atomically: false, encoding: .utf8)
        let name = try PartName.random().description
        try "".write(toFile: "\(self.notes.path)/\(name)", atomically: false, encoding: .utf8)
        #expect(self.part.removeParts() == 0)
        #expect(try self.place.names("") == ["report.pdf"])
        #expect(try self.notes.names("") == [name, "report.pdf"].sorted())
    }

    @Test func aNodeDoesItAtItsStart() async throws {
        let state = try StateDirectory()
        let first = try await TestNode("bob", in: state)
        await first.stop()
        let name = try await first.node.spool.publisher.notes.add(in: try SafeDirectory(path: self.place.path)).description
        try self.put(name)
        try self.put("report.pdf")
        // The part is removed from the noted directory, even if the settings now name another one.
        let second = try await TestNode("bob", in: state)
        try await eventually("it is gone") { try self.place.names("") == ["report.pdf"] && state.names("spool/publishing") == [] }
        await second.stop()
    }
}
