import ArgumentParser
import Earshot
import Foundation
import Testing

@testable import earshotd

/// The commands that handle the key, as they are typed; what they do to the files is tested beside `Identity`.
@Suite struct IdentityCommandTests {
    /// The daemon has the same options: they are the command's, wherever they stand.
    @Test(arguments: [
        ["identity", "show", "--state-directory", "/x", "--config", "/c"],
        ["--state-directory", "/x", "identity", "show", "--config", "/c"],
        ["--state-directory", "/x", "--config", "/c", "identity", "show"],
    ])
    func placesMayStandAnywhere(_ words: [String]) throws {
        let command = try #require(try EarshotDaemon.parseAsRoot(words) as? IdentityShowCommand)
        #expect(command.options.stateDirectory == "/x" && command.options.config == "/c")
    }

    @Test func aRotationAndABackup() throws {
        let place = FileManager.default.temporaryDirectory.appendingPathComponent("earshot-identity-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: place) }
        let config = "\(place)/earshotd.conf"
        try Data().write(to: URL(fileURLWithPath: config))
        func run(_ words: String...) throws {
            var command = try EarshotDaemon.parseAsRoot(["identity"] + words + ["--state-directory", place, "--config", config])
            try command.run()
        }
        // Nothing is made in passing.
        #expect(#expect(throws: StartError.self) { try run("show") }?.exitCode == 66)
        #expect(#expect(throws: StartError.self) { try run("export") }?.exitCode == 66)
        #expect(try FileManager.default.contentsOfDirectory(atPath: place) == ["earshotd.conf"])
        try run("new")
        let first = try Identity.load(from: place).id
        // Typed again at once, and again: within one second, as like as not.
        try run("new")
        try run("new")
        let second = try Identity.load(from: place).id
        #expect(first != second)
        let old = try FileManager.default.contentsOfDirectory(atPath: place).filter { $0.hasPrefix("identity-") }
        #expect(old.count == 2)
        // No daemon has run there: what only that makes is not there, and would be root's where root types this for a service.
        #expect(!FileManager.default.fileExists(atPath: "\(place)/\(StateLock.fileName)"))
        try run("export", "-o", "\(place)/backup")
        let attributes = try FileManager.default.attributesOfItem(atPath: "\(place)/backup")
        #expect(attributes[.posixPermissions] as? Int == 0o600)
        #expect(#expect(throws: StartError.self) { try run("export", "-o", "\(place)/backup") }?.exitCode == 73)
        try run("show")
        // A person's own is replaced where it is kept.
        try Data("[identity]\ncertificate = /nothing\nprivate_key = /nothing\n".utf8).write(to: URL(fileURLWithPath: config))
        #expect(#expect(throws: SettingsError.self) { try run("new") }?.exitCode == 78)
        #expect(try Identity.load(from: place).id == second)
    }

    /// A user of the system's daemon has no identity and means the daemon's.
    @Test func theSystemsIdentityIsFound() throws {
        let place = FileManager.default.temporaryDirectory.appendingPathComponent("earshot-identity-\(UUID().uuidString)").path
        let service = Places.Service(settings: "\(place)/etc", state: "\(place)/system")
        let own = "\(place)/own"
        #expect(PlaceOptions.systemState(besides: own, service: service) == nil, "no system's daemon is installed")
        defer { try? FileManager.default.removeItem(atPath: place) }
        for directory in [service.state, own] {
            try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        }
        #expect(PlaceOptions.systemState(besides: own, service: service) == service.state)
        _ = try Identity.replace(in: own, now: Date())
        #expect(PlaceOptions.systemState(besides: own, service: service) == nil)
    }

    /// A backup of which nothing was written must not look like one.
    @Test func aFullDiskIsTold() throws {
        let full = Glibc.open("/dev/full", O_WRONLY | O_CLOEXEC)
        try #require(full >= 0)
        defer { close(full) }
        let error = #expect(throws: StartError.self) { try EarshotDaemon.output("key", to: full) }
        #expect(error?.exitCode == 74)
        #expect(error?.description == "cannot write standard output: no space left on device")
    }
}
