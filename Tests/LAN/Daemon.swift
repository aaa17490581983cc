import EarshotClient
import Foundation
import Synchronization
import Testing

/// An `earshotd` on a host, with its command line. The state remains after the daemon ends, so that it can start again.
final class Daemon: Sendable {
    let name: String
    let host: String
    /// The directory of the state, the socket and the test's files.
    let place: String
    private let log: String
    private let arguments: [String]
    private let environment: [String: String]
    private let running = Mutex<Running?>(nil)

    init(name: String, host: String, place: String, log: String, arguments: [String], environment: [String: String]) throws {
        self.name = name
        self.host = host
        self.place = place
        self.log = log
        self.arguments = arguments
        self.environment = environment
        try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
    }

    /// Starts a process without waiting for it, for tests of refusals.
    func launch(arguments: [String] = []) throws -> Running {
        let daemon = [
            "\(Laboratory.binaries)/earshotd", "--name", self.name, "--state-directory", "\(self.place)/state", "--socket", self.socket,
        ]
        return try Running(
            [Laboratory.script, "host", "exec", self.host, "--"] + daemon + self.arguments + arguments,
            environment: self.environment, log: self.log)
    }

    /// Starts the daemon, and returns once it answers.
    func start() async throws {
        let running = try self.launch()
        self.running.withLock { $0 = running }
        try await eventually("\(self.name)'s daemon answers") {
            guard running.isRunning else { throw Late(description: "\(self.name)'s daemon ended with \(await running.status())") }
            return try await self.earshot("status").status == 0
        }
    }

    /// Sends SIGTERM, and returns the exit status.
    func stop() async throws -> Int32 {
        let running = try #require(self.running.withLock { $0 })
        running.signal(SIGTERM)
        return await running.status()
    }

    /// Sends SIGKILL if the daemon still runs.
    func kill() async {
        guard let running = self.running.withLock({ $0 }) else { return }
        running.signal(SIGKILL)
        _ = await running.status()
    }

    /// Sends SIGKILL, and starts the daemon again with the same state.
    func restart() async throws {
        await self.kill()
        try await self.start()
    }

    /// The daemon's process id.
    var pid: Int32? { self.running.withLock { $0?.pid } }

    /// Whether the daemon's process still runs.
    var isRunning: Bool { self.running.withLock { $0?.isRunning ?? false } }

    /// The daemon's control socket.
    var socket: String { "\(self.place)/socket" }

    // MARK: - The command line

    /// Runs a command of this peer's user in the daemon's directory to its end.
    func earshot(_ arguments: String...) async throws -> Outcome { try await self.earshot(arguments) }

    func earshot(_ arguments: [String]) async throws -> Outcome {
        let outcome = try await self.begin(arguments).outcome()
        if outcome.status == 0, arguments.contains("--json") { try APIOutput.check(outcome.output, of: arguments) }
        return outcome
    }

    /// Starts a command that a test observes while it runs. It is killed after two minutes, so that a fault fails the test instead of
    /// blocking it.
    func begin(_ arguments: [String]) throws -> Running {
        try Running(
            [
                "/usr/bin/timeout", "-s", "KILL", "120", Laboratory.script, "host", "exec",
                self.host, "--", "\(Laboratory.binaries)/earshot",
            ]
                + arguments,
            environment: ["EARSHOT_SOCKET": self.socket], directory: self.place)
    }

    /// Runs a command that must end with this exit status.
    @discardableResult
    func expect(
        _ status: Int32, _ arguments: String..., sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> Outcome {
        let outcome = try await self.earshot(arguments)
        try #require(outcome.status == status, "earshot \(arguments.joined(separator: " ")): \(outcome)", sourceLocation: sourceLocation)
        return outcome
    }

    /// Runs a command with `--json`, and decodes its output.
    func decode<Value: Decodable>(_ type: Value.Type, _ arguments: String...) async throws -> Value {
        let outcome = try await self.earshot(arguments + ["--json"])
        try #require(outcome.status == 0, "earshot \(arguments.joined(separator: " ")): \(outcome)")
        return try ControlJSON.decode(type, from: outcome.output.utf8)
    }

    func id() async throws -> String { try await self.status().peerID.description }

    func status() async throws -> ControlAPI.Status { try await self.decode(ControlAPI.Status.self, "status") }

    func peers() async throws -> [ControlAPI.Peer] { try await self.decode(ControlAPI.PeerList.self, "peers").peers }

    func sessions() async throws -> [ControlAPI.Session] { try await self.decode(ControlAPI.SessionList.self, "sessions").sessions }

    func invitations() async throws -> [ControlAPI.Invitation] {
        try await self.decode(ControlAPI.InvitationList.self, "invitations").invitations
    }

    func files() async throws -> [ControlAPI.Resource] { try await self.decode(ControlAPI.ResourceList.self, "file", "list").resources }

    /// Takes this many messages from the inbox, oldest first; fewer if no more arrive in time.
    func receive(_ count: Int, seconds: Int = 20) async throws -> [ControlAPI.Message] {
        let outcome = try await self.earshot("receive", "--json", "--count", "\(count)", "--timeout", "\(seconds)")
        return try outcome.output.split(separator: "\n").map { try ControlJSON.decode(ControlAPI.Message.self, from: $0.utf8) }
    }

    // MARK: - Waiting

    /// Waits until the other peer is listed and nearby, and returns how long that took.
    @discardableResult
    func awaitPeer(_ other: Daemon, within limit: Duration = .seconds(20)) async throws -> Duration {
        let id = try await other.id()
        return try await eventually(within: limit, "\(self.name) sees \(other.name)") {
            try await self.peers().contains { $0.id == id && $0.presence == .nearby }
        }
    }

    func awaitConnected(to other: Daemon, within limit: Duration = .seconds(30)) async throws {
        let id = try await other.id()
        try await eventually(within: limit, "\(self.name) is connected to \(other.name)") {
            try await self.sessions().contains { $0.members.contains { $0.peerID == id && $0.state == .connected } }
        }
    }

    /// Waits for an invitation from the other peer.
    @discardableResult
    func awaitInvitation(from other: Daemon) async throws -> ControlAPI.Invitation {
        let id = try await other.id()
        var found: ControlAPI.Invitation?
        try await eventually("\(self.name) has an invitation from \(other.name)") {
            found = try await self.invitations().first { $0.peerID == id && $0.direction == .incoming }
            return found != nil
        }
        return try #require(found)
    }

    func awaitNoInvitation() async throws {
        try await eventually("\(self.name) has no invitation") { try await self.invitations().isEmpty }
    }
}

/// Whether a text, as a command prints or takes it, is this id.
func == (id: PeerID, text: String) -> Bool { id.description == text }
