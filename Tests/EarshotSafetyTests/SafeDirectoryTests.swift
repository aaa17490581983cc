import EarshotSafety
import Foundation
import Glibc
import Testing

/// A directory for one test, gone with it.
final class Scratch: Sendable {
    let path: String
    init(in place: String = FileManager.default.temporaryDirectory.path) throws {
        self.path = "\(place)/earshot-safety-\(UUID())"
        try FileManager.default.createDirectory(atPath: self.path, withIntermediateDirectories: true)
    }
    deinit { try? FileManager.default.removeItem(atPath: self.path) }

    func text(_ name: String) throws -> String { try String(contentsOfFile: "\(self.path)/\(name)", encoding: .utf8) }
    func put(_ name: String, _ text: String) throws { try text.write(toFile: "\(self.path)/\(name)", atomically: false, encoding: .utf8) }
    func link(_ name: String, to target: String) throws {
        try FileManager.default.createSymbolicLink(atPath: "\(self.path)/\(name)", withDestinationPath: target)
    }
    func names() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: self.path).sorted() }
}

@Suite struct SafeDirectoryTests {
    /// The means of a file system to publish a file: name a file that was created without a name, rename without replacing another file, or
    /// only create a new file.
    enum Means: CaseIterable {
        case unnamed, renaming, copying
    }

    private func file(in directory: SafeDirectory, by means: Means) throws -> TemporaryFile {
        switch means {
        case .unnamed: try TemporaryFile(in: directory)
        case .renaming: try TemporaryFile(in: directory, named: true)
        case .copying: try TemporaryFile(in: directory, copied: true)
        }
    }

    private func publish(
        _ text: String, as name: String, in directory: SafeDirectory, _ conflict: SafeDirectory.Conflict, by means: Means
    ) throws -> String? {
        let file = try self.file(in: directory, by: means)
        try file.file.write(Array(text.utf8), at: 0)
        return try file.publish(as: SafeName(name), onConflict: conflict)?.description
    }

    @Test(arguments: Means.allCases) func publishingFollowsThePolicyForConflicts(by means: Means) throws {
        let scratch = try Scratch()
        let directory = try SafeDirectory(path: scratch.path)
        #expect(try self.publish("1", as: "a.txt", in: directory, .rename, by: means) == "a.txt")
        #expect(try self.publish("2", as: "a.txt", in: directory, .rename, by: means) == "a (2).txt")
        #expect(try self.publish("3", as: "a.txt", in: directory, .rename, by: means) == "a (3).txt")
        #expect(try self.publish("4", as: "a.txt", in: directory, .skip, by: means) == nil)
        #expect(try scratch.text("a.txt") == "1")
        #expect(try self.publish("5", as: "a.txt", in: directory, .overwrite, by: means) == "a.txt")
        #expect(try self.publish("6", as: "new.txt", in: directory, .overwrite, by: means) == "new.txt")
        #expect(try self.publish("7", as: "other.txt", in: directory, .skip, by: means) == "other.txt")
        #expect(try scratch.text("a.txt") == "5")
        #expect(try scratch.text("a (2).txt") == "2")
        #expect(try scratch.names() == ["a (2).txt", "a (3).txt", "a.txt", "new.txt", "other.txt"])
    }

    /// A copy has the permissions and the time of what it is of, and all of a long one.
    @Test(arguments: Means.allCases) func permissionsAndTimesStay(by means: Means) throws {
        let scratch = try Scratch()
        let file = try self.file(in: try SafeDirectory(path: scratch.path), by: means)
        let bytes = [UInt8](repeating: 7, count: 3 << 20 | 1)
        try file.file.write(bytes, at: 0)
        try file.file.setMode(0o640)
        var times = [timespec(tv_sec: 1_000_000_000, tv_nsec: 5), timespec(tv_sec: 1_000_000_000, tv_nsec: 5)]
        try #require(futimens(file.file.descriptor, &times) == 0)
        #expect(try file.publish(as: try SafeName("a"), onConflict: .rename)?.description == "a")
        let status = try #require(FileStatus(path: "\(scratch.path)/a"))
        #expect(status.mode == 0o640 && status.modified == [1_000_000_000, 5])
        #expect(FileManager.default.contents(atPath: "\(scratch.path)/a") == Data(bytes))
        #expect(try scratch.names() == ["a"])
    }

    @Test(arguments: Means.allCases) func aDroppedFileLeavesNothing(by means: Means) throws {
        let scratch = try Scratch()
        let directory = try SafeDirectory(path: scratch.path)
        do {
            let file = try self.file(in: directory, by: means)
            try file.file.write([1, 2, 3], at: 0)
            #expect(try scratch.names().count == (means == .unnamed ? 0 : 1))
        }
        #expect(try scratch.names() == [])
    }

    /// A link planted under the name, dangling or not, is never written through.
    @Test(arguments: Means.allCases, SafeDirectory.Conflict.allCases)
    func aPlantedLinkIsNotFollowed(by means: Means, conflict: SafeDirectory.Conflict) throws {
        let scratch = try Scratch()
        let outside = try Scratch()
        try outside.put("victim", "untouched")
        try scratch.link("a", to: "\(outside.path)/victim")
        try scratch.link("b", to: "\(outside.path)/missing")
        let directory = try SafeDirectory(path: scratch.path)
        for name in ["a", "b"] {
            let result = try self.publish("evil", as: name, in: directory, conflict, by: means)
            switch conflict {
            case .rename: #expect(result == "\(name) (2)")
            case .overwrite: #expect(result == name)
            case .skip: #expect(result == nil)
            }
        }
        #expect(try outside.names() == ["victim"])
        #expect(try outside.text("victim") == "untouched")
    }

    @Test func opensNothingThroughALink() throws {
        let scratch = try Scratch()
        let outside = try Scratch()
        try outside.put("secret", "x")
        try scratch.link("file", to: "\(outside.path)/secret")
        try scratch.link("folder", to: outside.path)
        let directory = try SafeDirectory(path: scratch.path)
        #expect(throws: FileError.self) { try directory.open(try SafeName("file")) }
        #expect(throws: FileError.self) { try directory.subdirectory(try SafeName("folder")) }
        #expect(throws: FileError.self) { try directory.subdirectory(try SafeName("folder"), create: 0o700) }
        #expect(throws: FileError.self) { try directory.open(try SafeName("file"), flags: OpenFile.readWrite | OpenFile.create) }
        #expect(try directory.size(of: SafeName("file")) == nil)
        #expect(try directory.remove(SafeName("file")))
        #expect(try outside.text("secret") == "x")
    }

    @Test func aDirectoryUnderTheNameIsLeftAlone() throws {
        let scratch = try Scratch()
        let directory = try SafeDirectory(path: scratch.path)
        _ = try directory.subdirectory(SafeName("d"), create: 0o700)
        for means in Means.allCases {
            #expect(throws: FileError.self) { try self.publish("x", as: "d", in: directory, .overwrite, by: means) }
        }
        #expect(try self.publish("x", as: "d", in: directory, .rename, by: .unnamed) == "d (2)")
        #expect(try scratch.names() == ["d", "d (2)"])
    }

    /// Two writers of one name: both contents survive, under two names.
    @Test func racingPublishersReplaceNothing() async throws {
        let scratch = try Scratch()
        let directory = try SafeDirectory(path: scratch.path)
        let names = try await withThrowingTaskGroup(of: String?.self) { group in
            for number in 0..<20 {
                let means = Means.allCases[number % Means.allCases.count]
                group.addTask { try self.publish("\(number)", as: "same", in: directory, .rename, by: means) }
            }
            return try await group.reduce(into: [String?]()) { $0.append($1) }
        }
        #expect(Set(names).count == 20)
        let contents = try scratch.names().map { try scratch.text($0) }
        #expect(Set(contents) == Set((0..<20).map { "\($0)" }))
    }

    @Test func makesMissingDirectoriesPrivate() throws {
        let scratch = try Scratch()
        _ = try SafeDirectory(path: "\(scratch.path)/a/b/c", create: 0o700)
        let mode = try FileManager.default.attributesOfItem(atPath: "\(scratch.path)/a/b")[.posixPermissions] as? NSNumber
        #expect(mode?.intValue == 0o700)
        #expect(throws: FileError.self) { try SafeDirectory(path: "\(scratch.path)/missing") }
        #expect(throws: FileError.self) { try SafeDirectory(path: "") }
        try scratch.put("file", "x")
        #expect(throws: FileError.self) { try SafeDirectory(path: "\(scratch.path)/file") }
    }

    @Test func movesWithoutReplacing() throws {
        let scratch = try Scratch()
        let one = try SafeDirectory(path: "\(scratch.path)/one", create: 0o700)
        let two = try SafeDirectory(path: "\(scratch.path)/two", create: 0o700)
        try scratch.put("one/x", "1")
        try scratch.put("two/y", "2")
        let error = #expect(throws: FileError.self) { try one.move(SafeName("x"), to: two, as: SafeName("y")) }
        #expect(error?.code == EEXIST)
        try one.move(SafeName("x"), to: two, as: SafeName("x"))
        #expect(try two.entries().map(\.description).sorted() == ["x", "y"])
        #expect(try scratch.text("two/y") == "2")
        #expect(try two.size(of: SafeName("x")) == 1)
    }
}
