import Foundation
import Testing

@testable import earshotd

/// Peers choose the names of the files that they send. These files must not be stored among the daemon's own.
@Suite struct ReceivePlaceTests {
    /// A settings file in a directory of its own, in which a test can make further files.
    private struct Bench {
        let config: String
        let place: String
        var state: String
        var service = Places.Service()

        func make(_ directory: String) throws {
            try FileManager.default.createDirectory(atPath: "\(self.place)/\(directory)", withIntermediateDirectories: true)
        }

        func link(_ name: String, to target: String) throws {
            try FileManager.default.createSymbolicLink(
                atPath: "\(self.place)/\(name)", withDestinationPath: "\(self.place)/\(target)")
        }

        func loader(_ directory: String) throws -> SettingsLoader {
            try Data("[resources]\ndirectory = \(directory)\n".utf8).write(to: URL(fileURLWithPath: self.config))
            return SettingsLoader(
                flags: .init(config: self.config, stateDirectory: self.state, socket: "/s"), environment: [:], isRoot: false,
                hostName: "kitchen", service: self.service)
        }

        /// Whether a directory is refused by its line; one below the bench's place, unless it is absolute.
        func refuses(_ directory: String) throws -> Bool {
            let loaded = try self.loader(directory.hasPrefix("/") ? directory : "\(self.place)/\(directory)").load()
            do throws(SettingsError) {
                try loaded.checkReceivePlace()
                return false
            } catch {
                #expect(error.exitCode == 78 && error.origin == .file(path: self.config, line: 2))
                #expect(error.message.contains("the daemon has its own in \(self.place)/"))
                return true
            }
        }
    }

    private func withBench(_ state: String, _ body: (Bench) throws -> Void) throws {
        try withFile("") { path in
            let place = URL(fileURLWithPath: path).deletingLastPathComponent().path
            try body(Bench(config: path, place: place, state: "\(place)/\(state)"))
        }
    }

    @Test func neitherTheStateNorItsSpool() throws {
        try self.withBench("own/state") { bench in
            try bench.make("own/state/spool/complete")
            try bench.make("own/state/received")
            try bench.make("beside")
            try bench.link("link", to: "own")
            try bench.link("beside/deep", to: "own/state/spool/complete")
            let refused = [
                "own/state", "own/state/", "beside/../own/./state", "link/state", "own/state/spool", "own/state/spool/complete",
                "own/state/spool/new/er", "link/state/spool/new", "beside/deep",
            ]
            for directory in refused { #expect(try bench.refuses(directory), "\(directory)") }
            for directory in ["own/state/received", "own/state/new", "own/state2", "own", "", "link", "beside", "own/new", "new/state"] {
                #expect(try !bench.refuses(directory), "\(directory)")
            }
            // At a start and at a reload, too.
            let loader = try bench.loader(bench.state)
            let loaded = try loader.load()
            #expect(throws: SettingsError.self) { try Daemon(loaded, loader: loader) }
            #expect(throws: SettingsError.self) { try loaded.check() }
        }
    }

    /// The first start makes it, and so would whatever it was that made the directory.
    @Test func aStateThatIsNotThereYet() throws {
        try self.withBench("new/state") { (bench: Bench) throws in
            for directory in ["new/state", "new/state/spool", "new/state/spool/x"] {
                #expect(try bench.refuses(directory), "\(directory)")
            }
            for directory in ["new", "new/received", "new/state2", "new/state/received", "state"] {
                #expect(try !bench.refuses(directory), "\(directory)")
            }
        }
    }

    /// The owner may have moved the spool to another disk.
    @Test func aSpoolThatIsALink() throws {
        try self.withBench("state") { bench in
            try bench.make("state")
            try bench.make("disk/spool")
            try bench.link("state/spool", to: "disk/spool")
            #expect(try bench.refuses("disk/spool/x") && bench.refuses("disk/spool"))
            #expect(try !bench.refuses("disk/received"))
        }
    }

    /// A caller that checks the service's settings has another state directory. The service's state directory is refused all the same.
    @Test func theServicesStateCountsForItsSettings() throws {
        try self.withBench("mine") { bench in
            var bench = bench
            try bench.make("service")
            #expect(try !bench.refuses("service"))
            bench.service = Places.Service(settings: bench.place, state: "\(bench.place)/service")
            #expect(try bench.refuses("service"))
        }
    }
}
