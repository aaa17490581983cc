import EarshotClient
import EarshotSafety
import Foundation
import Testing

@testable import EarshotCLI

/// `earshot config` on the files, without a daemon: the settings are checked by the `earshotd` beside the tests.
@Suite struct SettingsChangeTests {
    /// A directory with a settings file, gone with the test.
    private final class Place: Sendable {
        let directory: String
        var path: String { "\(self.directory)/earshotd.conf" }
        var dropIns: String { "\(self.path).d" }
        var dropIn: String { "\(self.dropIns)/\(SettingsChange.dropIn)" }

        init(_ text: String? = "") throws {
            let place = FileManager.default.temporaryDirectory.appendingPathComponent("earshot-config-\(UUID().uuidString)")
            try FileManager.default.createDirectory(at: place, withIntermediateDirectories: false)
            self.directory = place.path
            if let text { try self.write(text, to: self.path) }
        }

        deinit { try? FileManager.default.removeItem(atPath: self.directory) }

        func write(_ text: String, to path: String) throws { try Data(text.utf8).write(to: URL(fileURLWithPath: path)) }

        func read(_ path: String? = nil) throws -> String { try String(contentsOfFile: path ?? self.dropIn, encoding: .utf8) }

        /// Changes settings, and returns the sentences about the change.
        @discardableResult
        func change(_ changes: [(String, String?)], verb: String = "set", fails: (any Error)? = nil) async throws -> [String] {
            let list = ControlReply(value: ControlAPI.SettingList(configuration: nil, settings: []), json: [])
            let place = SettingsPlace(path: self.path, settings: list, isRunning: false)
            let change = try SettingsChange(place, changes.map { (key: $0.0, value: $0.1) }, verb: verb)
            return try await change.apply { outcome in
                if let fails { throw fails }
                return SettingsReport(change, outcome, running: nil).lines
            }
        }

        func setting(_ key: String) throws -> ControlAPI.Setting {
            try #require(try FileCheck.run(self.path).value.setting(key))
        }
    }

    @Test func aValueIsSetAndRemoved() async throws {
        let place = try Place("[peer]\nname = file # mine\n")
        #expect(
            try await place.change([("peer.name", "desk"), ("discovery.info.room", " a # b ")]).first == "set peer.name in \(place.dropIn)")
        #expect(try place.setting("peer.name").value == "desk")
        #expect(try place.setting("peer.name").place == "\(place.dropIn):4")
        #expect(try place.setting("discovery.info.room").value == " a # b ")
        #expect(FileStatus(path: place.dropIn)?.mode == FileStatus(path: place.path)?.mode)
        let lines = try await place.change([("peer.name", nil)], verb: "unset")
        #expect(lines.prefix(2) == ["removed peer.name from \(place.dropIn)", "peer.name: \(place.path):2 still sets it to 'file'"])
        #expect(try place.setting("peer.name").value == "file")
        #expect(try await place.change([("peer.name", nil)], verb: "unset").first == "\(place.dropIn) does not set peer.name")
        #expect(try place.read(place.path) == "[peer]\nname = file # mine\n")
    }

    @Test func theSettingsFileMayBeMissing() async throws {
        let place = try Place(nil)
        try await place.change([("peer.name", "desk")])
        #expect(try place.setting("peer.name").value == "desk")
        #expect(FileStatus(path: place.dropIns)?.mode == FileStatus(path: place.directory)?.mode)
        #expect(FileStatus(path: place.dropIn)?.mode == 0o644)
    }

    @Test(arguments: [
        ("peer.port", "99999", "cannot set peer.port: '99999' is not a whole number from 0 to 65535"),
        ("peer.prot", "1", "cannot set peer.prot: unknown key 'prot' in [peer]; there are name, service_type, port, encryption"),
        ("log.level", "loud", "cannot set log.level: 'loud' is not one of trace, debug, info, notice, warning, error, critical"),
        (
            "identity.certificate", "/x",
            "cannot set identity.certificate: there is a certificate but no private_key in [identity]; set both"
        ),
    ])
    func aRefusedValueChangesNothing(key: String, value: String, message: String) async throws {
        let place = try Place()
        let refused = await #expect(throws: CommandFailure.self) { try await place.change([(key, value)]) }
        #expect(refused?.message == message && refused?.status == .usage)
        #expect(FileStatus(path: place.dropIns) == nil)
        try await place.change([("peer.name", "desk")])
        let before = try place.read()
        await #expect(throws: CommandFailure.self) { try await place.change([("peer.name", "door"), (key, value)]) }
        #expect(try place.read() == before)
        #expect(try FileManager.default.contentsOfDirectory(atPath: place.dropIns) == [SettingsChange.dropIn])
    }

    /// An error elsewhere is named with its place, and one in the drop-in itself can be mended.
    @Test func anErrorElsewhereIsNamed() async throws {
        let place = try Place("[peer]\nprot = 1\n")
        let refused = await #expect(throws: CommandFailure.self) { try await place.change([("peer.name", "desk")]) }
        #expect(refused?.status == .configuration && refused?.message?.contains("\(place.path):2: unknown key 'prot'") == true)
        #expect(FileStatus(path: place.dropIns) == nil)
        let other = try Place()
        try FileManager.default.createDirectory(atPath: other.dropIns, withIntermediateDirectories: false)
        try other.write("[peer]\nport = x\n", to: other.dropIn)
        try await other.change([("peer.port", nil)], verb: "unset")
        #expect(try other.read() == "[peer]\n")
    }

    @Test func aLaterDropInIsSaid() async throws {
        let place = try Place()
        try FileManager.default.createDirectory(atPath: place.dropIns, withIntermediateDirectories: false)
        try place.write("[peer]\nname = site\n", to: "\(place.dropIns)/90-site.conf")
        let lines = try await place.change([("peer.name", "desk")])
        #expect(lines.dropFirst().first == "peer.name: \(place.dropIns)/90-site.conf:2 sets it again, so that its value stays 'site'")
        #expect(try place.read("\(place.dropIns)/90-site.conf") == "[peer]\nname = site\n")
    }

    /// The daemon refuses what only it can see, for example a file that its user may not read.
    @Test func aRefusalOfTheDaemonRestoresTheFile() async throws {
        let place = try Place()
        let refusal = CommandFailure(.configuration, "refused")
        let refused = await #expect(throws: CommandFailure.self) { try await place.change([("peer.name", "desk")], fails: refusal) }
        #expect(refused == refusal)
        #expect(FileStatus(path: place.dropIns) == nil)
        try await place.change([("peer.name", "desk")])
        let before = try place.read()
        await #expect(throws: CommandFailure.self) { try await place.change([("peer.name", "door")], fails: refusal) }
        #expect(try place.read() == before)
    }

    /// A command that is killed before the file gets its name leaves the settings as they were, and the next one removes its part.
    @Test func aKilledCommandLeavesNothing() async throws {
        let place = try Place()
        try await place.change([("peer.name", "desk")])
        let part = try "\(place.dropIns)/\(PartName.random().description)"
        try place.write("[peer]\nname = door\n", to: part)
        #expect(try place.setting("peer.name").value == "desk")
        try await place.change([("peer.port", "5000")])
        #expect(FileStatus(path: part) == nil)
        #expect(try place.setting("peer.name").value == "desk" && place.setting("peer.port").value == "5000")
    }

    @Test func twoAtOnceBothCount() async throws {
        let place = try Place()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<4 { group.addTask { try await place.change([("discovery.info.k\(number)", "v")]) } }
            try await group.waitForAll()
        }
        for number in 0..<4 { #expect(try place.setting("discovery.info.k\(number)").value == "v") }
    }

    @Test func aLinkIsNotReplaced() async throws {
        let place = try Place()
        try FileManager.default.createDirectory(atPath: place.dropIns, withIntermediateDirectories: false)
        try FileManager.default.createSymbolicLink(atPath: place.dropIn, withDestinationPath: "/dev/null")
        let refused = await #expect(throws: CommandFailure.self) { try await place.change([("peer.name", "desk")]) }
        #expect(refused?.message == "\(place.dropIn) is a symbolic link and not changed" && refused?.status == .cannotCreate)
    }

    /// The right to write the directory is needed; the error names sudo.
    @Test(.enabled(if: geteuid() == 0, "skipped: being another user needs root")) func anotherUserMayNot() async throws {
        let place = try Place()
        let own = try #require(SmallFile.link("/proc/self/exe"))
        let program = "\(own[..<(try #require(own.lastIndex(of: "/")))])/earshot"
        let words = [
            "--reuid=65534", "--regid=65534", "--clear-groups", program, "config", "set", "peer.name", "desk", "--config", place.path,
        ]
        let setpriv = try #require(ToolRun.find("setpriv"))
        let environment = ["EARSHOT_SOCKET=/nonexistent", "PATH=/usr/bin:/bin"]
        let run = try #require(ToolRun.run(setpriv, words, environment: environment))
        #expect(run.status == ExitStatus.denied.rawValue)
        #expect(run.errors.hasPrefix("earshot: cannot set peer.name: not permitted to write \(place.dropIns)\n"))
        #expect(run.errors.contains("sudo earshot config"))
    }
}
