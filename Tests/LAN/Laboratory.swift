import Foundation
import Synchronization
import Testing

/// The tests that need several hosts. They share the laboratory that `Tests/LAN/lab run` created, one test at a time. Every test has its
/// own daemons, with its own service type, so that it does not see another test's peers.
@Suite(.serialized) enum LAN {}

/// Thrown if there are no hosts: a test that cannot run has failed.
struct NotInLaboratory: Error, CustomStringConvertible {
    var description: String { "these tests need a laboratory: run Tests/run, or Tests/LAN/lab run -- swift test --filter LANTests" }
}

/// A test's part of the laboratory: its hosts, daemons and files.
final class Laboratory: Sendable {
    private struct State {
        var daemons: [Daemon] = []
        var processes: [Running] = []
        var ownHosts: [String] = []
    }

    private static let scenes = Mutex(0)

    /// The service type of this test.
    let serviceType: String
    /// The directory of this test, deleted at its end.
    let place: String
    private let logs: String
    private let state = Mutex(State())

    /// The directory of the laboratory.
    static func room() throws -> String {
        guard let room = ProcessInfo.processInfo.environment["EARSHOT_LAB"], FileManager.default.fileExists(atPath: "\(room)/hosts") else {
            throw NotInLaboratory()
        }
        return room
    }

    /// The script that makes and changes hosts, beside this file.
    static let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("lab").path

    /// The directory of `earshotd` and `earshot`, beside the test bundle.
    static let binaries =
        ProcessInfo.processInfo.environment["EARSHOT_BIN"]
        ?? URL(fileURLWithPath: CommandLine.arguments.first ?? "").deletingLastPathComponent().path

    private init() throws {
        let number = Self.scenes.withLock { number in
            number += 1
            return number
        }
        self.serviceType = "lan-\(number)"
        self.place = "\(try Self.room())/tmp/\(self.serviceType)"
        // Kept after the run, to investigate a failure.
        let name = Test.current.map { $0.name.prefix { $0 != "(" } } ?? "test"
        // Relative to the binaries themselves, since their directory may be reached by a link.
        let build = URL(fileURLWithPath: Self.binaries).resolvingSymlinksInPath().deletingLastPathComponent().deletingLastPathComponent()
        self.logs = "\(build.path)/tests/\(name)"
        try FileManager.default.createDirectory(atPath: self.place, withIntermediateDirectories: true)
        try? FileManager.default.removeItem(atPath: self.logs)
        try FileManager.default.createDirectory(atPath: self.logs, withIntermediateDirectories: true)
    }

    /// Runs a test, and stops everything that it started, whatever its outcome.
    static func run(_ body: (Laboratory) async throws -> Void) async throws {
        let laboratory = try Laboratory()
        let result: Result<Void, any Error>
        do {
            result = .success(try await body(laboratory))
        } catch {
            result = .failure(error)
        }
        try await laboratory.end()
        if case .failure = result { laboratory.printLogs() }
        try result.get()
    }

    /// The hosts; each has a fixed address, independent of other hosts.
    private static let sharedHosts = ["alice", "bob", "carol"]

    /// Returns a host by name, and creates it at the first use. All tests share it and leave it unchanged.
    func host(_ name: String) async throws {
        guard !FileManager.default.fileExists(atPath: "\(try Self.room())/hosts/\(name)") else { return }
        let place = try #require(Self.sharedHosts.firstIndex(of: name), "\(name) is none of the shared hosts: make it with ownHost")
        try await self.lab("host", "add", name, "10.77.0.\(place + 1)")
    }

    /// Creates a host that this test may damage; it is removed after the test.
    func ownHost(_ name: String, _ address: String, _ options: String...) async throws {
        try await self.lab(["host", "add", name, address] + options)
        self.state.withLock { $0.ownHosts.append(name) }
    }

    /// Runs `lab`, which must succeed.
    @discardableResult
    func lab(_ arguments: String...) async throws -> Outcome { try await self.lab(arguments) }

    @discardableResult
    func lab(_ arguments: [String]) async throws -> Outcome {
        let outcome = try await Running([Self.script] + arguments).outcome()
        try #require(outcome.status == 0, "lab \(arguments.joined(separator: " ")): \(outcome)")
        return outcome
    }

    /// Starts a daemon, and returns once it answers. Unless given, the host has the daemon's name.
    func daemon(
        _ name: String, on host: String? = nil, arguments: [String] = [], environment: [String: String] = [:]
    ) async throws -> Daemon {
        let host = host ?? name
        try await self.host(host)
        let number = self.state.withLock { $0.daemons.count }
        let daemon = try Daemon(
            name: name, host: host, place: "\(self.place)/\(number)", log: "\(self.logs)/\(number)-\(host).log",
            arguments: ["--service-type", self.serviceType] + arguments, environment: environment)
        self.state.withLock { $0.daemons.append(daemon) }
        try await daemon.start()
        return daemon
    }

    /// Starts two daemons, alice and bob, in a session; bob accepts every invitation.
    func session() async throws -> (alice: Daemon, bob: Daemon) {
        let alice = try await self.daemon("alice")
        let bob = try await self.daemon("bob", environment: ["EARSHOT_INVITATIONS_FROM_UNKNOWN": "accept"])
        try await alice.awaitPeer(bob)
        try await alice.expect(0, "invite", bob.id())
        try await bob.awaitConnected(to: alice)
        return (alice, bob)
    }

    /// Runs a command on a host; it is stopped at the end of the test, if it still runs.
    func start(on host: String, _ command: [String], environment: [String: String] = [:]) throws -> Running {
        let running = try Running([Self.script, "host", "exec", host, "--"] + command, environment: environment)
        self.state.withLock { $0.processes.append(running) }
        return running
    }

    private func end() async throws {
        let state = self.state.withLock { $0 }
        for process in state.processes {
            process.signal(SIGKILL)
            _ = await process.status()
        }
        for daemon in state.daemons { await daemon.kill() }
        for host in state.ownHosts { try await self.lab("host", "stop", host) }
        try FileManager.default.removeItem(atPath: self.place)
    }

    private func printLogs() {
        for name in (try? FileManager.default.contentsOfDirectory(atPath: self.logs))?.sorted() ?? [] {
            let text = String(decoding: FileManager.default.contents(atPath: "\(self.logs)/\(name)") ?? Data(), as: UTF8.self)
            print(text.split(separator: "\n").suffix(30).map { "\(name): \($0)" }.joined(separator: "\n"))
        }
    }
}
