import Foundation
import Testing

@testable import EarshotCoding

/// Archives: values that a program keeps in a file.
@Suite struct ArchiveTests {
    struct Settings: Codable, Hashable {
        var interval: Double
        var peers: [String]
    }

    struct OldSettings: Codable, Hashable {
        var interval: Int
    }

    private let directory: URL
    private var path: String { self.directory.appending(path: "settings").path }
    private let value = Settings(interval: 1.5, peers: ["a", "b"])

    init() throws {
        self.directory = URL(fileURLWithPath: "/tmp/earshot-archive-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: self.directory, withIntermediateDirectories: false)
    }

    private func archive(kind: String = "example.settings", version: UInt32 = 1, _ migrations: [ArchiveMigration] = []) -> Archive<Settings>
    {
        Archive(path: self.path, kind: kind, version: version, migrations: migrations)
    }

    private func bytes() throws -> [UInt8] { Array(try Data(contentsOf: URL(fileURLWithPath: self.path))) }
    private func put(_ bytes: [UInt8]) throws { try Data(bytes).write(to: URL(fileURLWithPath: self.path)) }

    /// Both calls say so, and the file stays as it is.
    private func expect(_ code: ArchiveError.Code, _ archive: Archive<Settings>) throws {
        let before = try? self.bytes()
        let reading = #expect(throws: ArchiveError.self) { try archive.read() }
        #expect(reading?.code == code && reading?.description.contains(self.path) == true)
        let writing = #expect(throws: ArchiveError.self) { try archive.write(self.value) }
        #expect(writing?.code == code)
        #expect((try? self.bytes()) == before)
    }

    @Test func whatIsWrittenIsRead() throws {
        defer { try? FileManager.default.removeItem(at: self.directory) }
        #expect(try self.archive().read() == nil)
        try self.archive().write(self.value)
        #expect(try self.archive().read() == self.value)
        #expect(try self.bytes().starts(with: "earshot-archive 1 example.settings 1 34 ".utf8))
        let mode = try FileManager.default.attributesOfItem(atPath: self.path)[.posixPermissions] as? Int
        #expect(mode == 0o600)
        let other = Settings(interval: 0, peers: [])
        try self.archive().write(other)
        #expect(try self.archive().read() == other)
        #expect(try FileManager.default.contentsOfDirectory(atPath: self.directory.path) == ["settings"], "nothing else is left")
    }

    @Test func anOlderVersionIsBroughtUpToDate() throws {
        defer { try? FileManager.default.removeItem(at: self.directory) }
        try Archive<OldSettings>(path: self.path, kind: "example.settings").write(OldSettings(interval: 7))
        let before = try self.bytes()
        let first = ArchiveMigration(from: 1) { (old: OldSettings) in ["interval": Double(old.interval)] }
        let second = ArchiveMigration(from: 2) { (old: [String: Double]) in Settings(interval: old["interval"] ?? 0, peers: ["new"]) }
        let archive = self.archive(version: 3, [second, first])
        #expect(try archive.read() == Settings(interval: 7, peers: ["new"]))
        #expect(try self.bytes() == before)
        // Reading says which step is missing; writing needs none.
        let error = #expect(throws: ArchiveError.self) { try self.archive(version: 3, [first]).read() }
        #expect(error?.code == .noMigration)
        let wrong = ArchiveMigration(from: 1) { (old: [String: String]) in old }
        #expect(#expect(throws: ArchiveError.self) { try self.archive(version: 2, [wrong]).read() }?.code == .undecodable)
        try archive.write(self.value)
        #expect(try archive.read() == self.value)
        try self.expect(.newer, self.archive(version: 2))
    }

    @Test func whatIsForeignStaysAsItIs() throws {
        defer { try? FileManager.default.removeItem(at: self.directory) }
        for text in ["", "x", "earshot-archive", "\u{0}", "earshot-archive 2 example.settings 1 2 00\n{}"] {
            try self.put(Array(text.utf8))
            try self.expect(.foreign, self.archive())
        }
        try self.put([UInt8](repeating: 0x20, count: 1 << 20))
        try self.expect(.foreign, self.archive())
        try self.archive(kind: "other").expectWritten(over: self.path, self.value)
        try self.expect(.foreign, self.archive())
    }

    /// Every bit counts, and every byte that is missing or too many.
    @Test func whatIsDamagedStaysAsItIs() throws {
        defer { try? FileManager.default.removeItem(at: self.directory) }
        try self.archive().write(self.value)
        let whole = try self.bytes()
        for index in whole.indices {
            for bit in 0..<8 {
                var bytes = whole
                bytes[index] ^= 1 << UInt8(bit)
                try self.put(bytes)
                #expect(throws: ArchiveError.self, "bit \(bit) of byte \(index)") { try self.archive().read() }
            }
        }
        for count in ArchiveHeader.magic.utf8.count..<whole.count {
            try self.put(Array(whole.prefix(count)))
            let error = #expect(throws: ArchiveError.self) { try self.archive().read() }
            #expect(error?.code == .damaged, "the first \(count) bytes")
        }
        try self.put(whole + [0])
        try self.expect(.damaged, self.archive())
        try self.put(Array("earshot-archive 1 example.settings 1 9223372036854775807 00\n".utf8))
        try self.expect(.tooLarge, self.archive())
        try self.put(Array("earshot-archive 1 example.settings 01 0 00\n".utf8))
        try self.expect(.damaged, self.archive())
    }

    @Test func whatIsWholeAndNoValueIsSaid() throws {
        defer { try? FileManager.default.removeItem(at: self.directory) }
        try Archive<OldSettings>(path: self.path, kind: "example.settings").write(OldSettings(interval: 7))
        let error = #expect(throws: ArchiveError.self) { try self.archive().read() }
        #expect(error?.code == .undecodable && error?.reason == "`peers` is missing")
        #expect(#expect(throws: ArchiveError.self) { try self.archive().write(Settings(interval: .nan, peers: [])) }?.code == .unencodable)
    }

    @Test func theFileSystemsErrorsAreSaid() throws {
        defer { try? FileManager.default.removeItem(at: self.directory) }
        try FileManager.default.createSymbolicLink(atPath: self.path, withDestinationPath: "/etc/passwd")
        try self.expect(.unreadable, self.archive())
        for path in ["\(self.directory.path)/none/settings", "", "/", "\(self.path)/x", "\(self.directory.path)/.."] {
            let archive = Archive<Settings>(path: path, kind: "example.settings")
            #expect(throws: ArchiveError.self, "\(path)") { try archive.read() }
            #expect(throws: ArchiveError.self, "\(path)") { try archive.write(self.value) }
        }
    }

    @Test func anArchiveAboveTheSizeLimitIsRefused() throws {
        defer { try? FileManager.default.removeItem(at: self.directory) }
        let archive = Archive<String>(path: self.path, kind: "text")
        // A string has two quotation marks in JSON.
        let longest = String(repeating: "x", count: ArchiveLimits.size - 2)
        try archive.write(longest)
        #expect(try archive.read() == longest)
        #expect(#expect(throws: ArchiveError.self) { try archive.write(longest + "x") }?.code == .tooLarge)
        #expect(try archive.read() == longest)
    }
}

extension Archive where Value == ArchiveTests.Settings {
    /// Replaces the archive that another program has put at the path.
    fileprivate func expectWritten(over path: String, _ value: Value) throws {
        try FileManager.default.removeItem(atPath: path)
        try self.write(value)
    }
}
