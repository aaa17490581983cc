import Foundation
import Glibc
import Synchronization

/// The outcome of a command.
struct Outcome: Sendable, CustomStringConvertible {
    /// The exit status, or 128 plus the number of the signal that ended the process.
    let status: Int32
    /// The standard output.
    let output: String
    /// The standard error.
    let errors: String

    var description: String { "exit \(self.status)\n\(self.output)\(self.errors)" }
}

/// A running process. Its output goes to files, so that it never waits for a reader. Foundation's `Process` is not used: it considers a
/// process ended only when all its children have ended, and it crashes after some hundred processes.
final class Running: Sendable {
    private struct State {
        var status: Int32?
        var waiting: [CheckedContinuation<Int32, Never>] = []
    }

    /// The process id.
    let pid: pid_t
    private let output: String
    private let errors: String
    private let state = Mutex(State())

    /// Starts a program by its path. If `log` is given, both outputs go to that file, which remains after the test.
    init(_ command: [String], environment: [String: String] = [:], directory: String = "/", log: String? = nil) throws {
        let base = try log ?? "\(Laboratory.room())/tmp/\(UUID().uuidString)"
        self.output = log ?? "\(base).out"
        self.errors = log ?? "\(base).err"
        // `env` resets a signal setting that posix_spawn cannot: the children of a test run may ignore the keyboard's interrupt.
        let words = ["/usr/bin/env", "--default-signal", "--chdir=\(directory)"] + command
        let variables = ProcessInfo.processInfo.environment.merging(environment) { _, new in new }.map { "\($0.key)=\($0.value)" }
        self.pid = try Self.spawn(words, variables, output: self.output, errors: self.errors)
        // Only a blocking wait reports the end of a child, and that needs a thread.
        Thread.detachNewThread { self.ended(Self.wait(for: self.pid)) }
    }

    /// Whether the process still runs.
    var isRunning: Bool { self.state.withLock { $0.status == nil } }

    /// The standard output so far.
    func outputSoFar() -> String { Self.text(self.output) }

    /// The standard error so far.
    func errorsSoFar() -> String { Self.text(self.errors) }

    /// Sends a signal, if the process still runs.
    func signal(_ number: Int32) {
        if self.isRunning { kill(self.pid, number) }
    }

    /// Waits for the end, and returns the exit status.
    func status() async -> Int32 {
        await withCheckedContinuation { continuation in
            let known = self.state.withLock { state -> Int32? in
                if state.status == nil { state.waiting.append(continuation) }
                return state.status
            }
            if let known { continuation.resume(returning: known) }
        }
    }

    /// Waits for the end, and returns the outcome.
    func outcome() async -> Outcome {
        let status = await self.status()
        defer { for path in Set([self.output, self.errors]) { try? FileManager.default.removeItem(atPath: path) } }
        return Outcome(status: status, output: Self.text(self.output), errors: Self.text(self.errors))
    }

    private func ended(_ status: Int32) {
        let waiting = self.state.withLock { state in
            state.status = status
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume(returning: status) }
    }

    private static func spawn(_ words: [String], _ variables: [String], output: String, errors: String) throws -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        let appending = O_WRONLY | O_CREAT | O_APPEND
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output, appending, 0o600)
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, errors, appending, 0o600)
        let arguments = words.map { strdup($0) } + [nil]
        let environment = variables.map { strdup($0) } + [nil]
        defer { for pointer in arguments + environment { free(pointer) } }
        var pid: pid_t = 0
        let failure = posix_spawn(&pid, words[0], &actions, nil, arguments, environment)
        guard failure == 0 else { throw POSIXError(POSIXErrorCode(rawValue: failure) ?? .EIO) }
        return pid
    }

    private static func wait(for pid: pid_t) -> Int32 {
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0 && errno == EINTR {}
        let signal = status & 0x7F
        return signal == 0 ? (status >> 8) & 0xFF : 128 + signal
    }

    private static func text(_ path: String) -> String {
        String(decoding: FileManager.default.contents(atPath: path) ?? Data(), as: UTF8.self)
    }
}
