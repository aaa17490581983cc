import EarshotClient
import Foundation
import Glibc
import Testing

/// A real `earshotd` under attack, on loopback and without discovery. The daemon and its state are removed with the value.
final class VictimDaemon {
    let pid: pid_t
    let port: UInt16
    /// The directory of settings, state, socket and log.
    let place: String
    private let binaries: String
    /// The receiver of the daemon's notifications to systemd, if requested.
    let manager: NotifySocket?
    var socket: String { "\(self.place)/s" }

    /// Starts the daemon and waits until it serves. `descriptors` is its limit on open files, `watchdog` the time after which systemd would
    /// kill it, in seconds.
    init(
        settings: String = "", descriptors: Int = 4096, watchdog: Int? = nil, prepare: (String) throws -> Void = { _ in }
    ) throws {
        let place = "\(NSTemporaryDirectory())earshot-hostile-\(UUID().uuidString.prefix(8))"
        self.place = place
        try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        try prepare(place)
        self.binaries = try #require(Self.findBinaries(), "earshotd is not built: run swift build, or set EARSHOT_BIN")
        self.manager = watchdog == nil ? nil : try NotifySocket(path: "\(place)/notify")
        let basics = "[peer]\nencryption = optional\nport = 0\nname = victim\n[discovery]\nbackend = none\n"
        try (basics + settings).write(toFile: "\(self.place)/conf", atomically: false, encoding: .utf8)
        let script =
            "ulimit -n \(descriptors); exec '\(self.binaries)/earshotd' --config '\(self.place)/conf' --state-directory '\(self.place)/state'"
            + " --socket '\(self.place)/s' >'\(self.place)/out' 2>'\(self.place)/log'"
        let service = watchdog.map { ["NOTIFY_SOCKET=\(place)/notify", "WATCHDOG_USEC=\($0 * 1_000_000)"] } ?? []
        self.pid = try Self.spawn(["/bin/sh", "-c", script], service: service)
        let deadline = ContinuousClock.now + .seconds(30)
        var found: UInt16?
        while found == nil {
            let isStarting = ContinuousClock.now < deadline && kill(self.pid, 0) == 0
            try #require(isStarting, "the daemon does not start: \(Self.text("\(self.place)/log"))")
            usleep(20_000)
            let line = Self.text("\(self.place)/log").split(separator: "\n").first { $0.contains("earshotd: ready") }
            found = line?.split(separator: " ").first { $0.hasPrefix("port=") }.flatMap { UInt16($0.dropFirst(5)) }
        }
        self.port = try #require(found)
    }

    deinit {
        kill(self.pid, SIGKILL)
        var status: CInt = 0
        waitpid(self.pid, &status, 0)
        try? FileManager.default.removeItem(atPath: self.place)
    }

    private static func findBinaries() -> String? {
        // The directory of the tests' own program, which `swift test` passes as an argument.
        let beside = CommandLine.arguments.map { ($0 as NSString).deletingLastPathComponent }
        let places = [ProcessInfo.processInfo.environment["EARSHOT_BIN"] ?? ""] + beside
        return places.first { access("\($0)/earshotd", X_OK) == 0 }
    }

    private static func spawn(_ words: [String], output: String = "/dev/null", service: [String] = []) throws -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO)
        let arguments = words.map { strdup($0) } + [nil]
        let environment = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("EARSHOT_") && $0.key != "NOTIFY_SOCKET" }
        let variables = (environment.map { "\($0.key)=\($0.value)" } + service).map { strdup($0) } + [nil]
        defer { for pointer in arguments + variables { free(pointer) } }
        var pid: pid_t = 0
        let failure = posix_spawn(&pid, words[0], &actions, nil, arguments, variables)
        guard failure == 0 else { throw POSIXError(POSIXErrorCode(rawValue: failure) ?? .EIO) }
        return pid
    }

    // MARK: - State of the daemon

    static func text(_ path: String) -> String { String(decoding: FileManager.default.contents(atPath: path) ?? Data(), as: UTF8.self) }

    /// Whether the started process still runs: neither crashed nor replaced.
    var isAlive: Bool {
        var status: CInt = 0
        return waitpid(self.pid, &status, WNOHANG) == 0
    }

    /// The resident memory, in bytes.
    var memory: Int {
        let line = Self.text("/proc/\(self.pid)/status").split(separator: "\n").first { $0.hasPrefix("VmRSS:") }
        return (line?.split(whereSeparator: { !$0.isNumber }).first.flatMap { Int($0) } ?? 0) * 1024
    }

    /// The seconds of processor time so far.
    var processorTime: Double {
        let fields = Self.text("/proc/\(self.pid)/stat").split(separator: " ")
        return fields.count > 14 ? ((Double(fields[13]) ?? 0) + (Double(fields[14]) ?? 0)) / Double(sysconf(CInt(_SC_CLK_TCK))) : 0
    }

    /// Checks the daemon during a flood that took its descriptors: it idles, after `settling` microseconds, and serves `next` soon after
    /// the flood has ended.
    func outlasts(_ flood: inout [PlainSocket], settling: useconds_t, _ name: String, next: () throws -> Void) throws {
        usleep(settling)
        let began = self.processorTime
        usleep(2_000_000)
        let used = self.processorTime - began
        #expect(used < 0.5, "it spins: \(used) s of processor time in 2 s")
        flood.removeAll()
        let released = ContinuousClock.now
        try next()
        let time = ContinuousClock.now - released
        #expect(time < .seconds(4), "accepts again after \(time)")
        print("measured: \(name): \(used) s of processor time in 2 s, accepts again after \(time)")
    }

    var log: String { Self.text("\(self.place)/log") }

    /// The store, byte for byte: the database and its write-ahead log.
    var store: [Data?] { ["", "-wal"].map { FileManager.default.contents(atPath: "\(self.place)/state/earshot.db" + $0) } }

    // MARK: - The daemon's user

    /// Calls the API with a client that sends one request. Returns the status and the body.
    func call(_ method: String, _ path: String, json: String? = nil) throws -> (status: Int, body: String) {
        try Self.call(method, path, json: json, at: self.socket)
    }

    /// Calls the API through a socket's path. `patience` is the time limit for each piece of the answer, in milliseconds.
    static func call(
        _ method: String, _ path: String, json: String? = nil, at place: String, patience: Int32 = 15_000
    ) throws -> (status: Int, body: String) {
        let socket = try PlainSocket(path: place)
        socket.send(Self.request(method, path, json: json))
        guard let bytes = socket.receiveAll(within: patience) else { throw NoAnswer(what: "nothing in time") }
        let answer = String(decoding: bytes, as: UTF8.self)
        let parts = answer.split(separator: "\r\n\r\n", maxSplits: 1, omittingEmptySubsequences: false)
        let status = answer.split(separator: " ").dropFirst().first.flatMap { Int($0) }
        guard let status else { throw NoAnswer(what: answer) }
        return (status, parts.count > 1 ? String(parts[1]) : "")
    }

    /// Returns the bytes of a call.
    static func request(_ method: String, _ path: String, json: String? = nil) -> [UInt8] {
        var head = "\(method) \(path) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        if let json { head += "Content-Type: application/json\r\nContent-Length: \(json.utf8.count)\r\n" }
        return Array((head + "\r\n" + (json ?? "")).utf8)
    }

    /// The error for a missing or unexpected answer of the API.
    struct NoAnswer: Error { let what: String }

    /// Returns the decoded answer of the API for a path.
    func decoded<Value: Decodable>(_ type: Value.Type, at path: String) throws -> Value {
        // The body may be chunked; its JSON is one line among the chunks.
        let json = try self.call("GET", path).body.split(separator: "\r\n").first { $0.hasPrefix("{") } ?? ""
        return try JSONDecoder().decode(type, from: Data(json.utf8))
    }

    /// Runs a command, and returns its exit status and both outputs.
    func earshot(_ arguments: String...) throws -> (status: CInt, output: String) { try self.begin(arguments) }

    /// Runs a command, and returns both outputs.
    func run(_ arguments: [String]) throws -> String { try self.begin(arguments).output }

    /// Returns the output after a second of a command that does not end on its own.
    func watch(_ arguments: [String]) throws -> String { try self.begin(arguments, prefix: ["/usr/bin/timeout", "1"]).output }

    /// Starts a command that a test observes while it runs, for that time. Returns the file with both its outputs.
    func background(_ arguments: [String], seconds: Int) throws -> String {
        let output = "\(self.place)/cli-\(UUID().uuidString)"
        let words = (["/usr/bin/timeout", "\(seconds)", "\(self.binaries)/earshot"] + arguments + ["--socket", self.socket])
            .map { "'\($0)'" }.joined(separator: " ")
        // The shell ends at once, so no process has to wait for its child.
        #expect(try Self.run("\(words) >'\(output)' 2>&1 &") == 0)
        return output
    }

    private func begin(_ arguments: [String], prefix: [String] = []) throws -> (status: CInt, output: String) {
        let output = "\(self.place)/cli-\(UUID().uuidString)"
        let pid = try Self.spawn(prefix + ["\(self.binaries)/earshot"] + arguments + ["--socket", self.socket], output: output)
        return (Self.status(of: pid), Self.text(output))
    }

    /// Runs a line of shell. Returns its exit code.
    static func run(_ script: String) throws -> CInt { self.status(of: try self.spawn(["/bin/sh", "-c", script])) }

    private static func status(of pid: pid_t) -> CInt {
        var status: CInt = 0
        waitpid(pid, &status, 0)
        return status >> 8 & 0xFF
    }
}
