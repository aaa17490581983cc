import CLinux
import Dispatch
import EarshotSafety
import Glibc
import Synchronization

/// The command of a user that handles what arrives. It is run as it is given, without a shell.
///
/// Its standard input is a file in memory. A command that does not read its input, or that leaves children behind, can therefore neither
/// block this process nor send it a signal.
final class HandlerCommand: Sendable {
    /// How a run of the command ended.
    enum Ending: Hashable, Sendable {
        case exited(Int32)
        case killed(signal: Int32)
        /// The command still ran when `leave` was called.
        case left

        /// The end of a sentence that begins with the command.
        var words: String {
            switch self {
            case .exited(let status): "exited with status \(status)"
            case .killed(let signal): "was killed by signal \(signal)"
            case .left: "does not end"
            }
        }
    }

    /// The argument that stands for the path of a file.
    static let placeholder = "{}"

    private let path: String
    private let words: [String]

    private struct Run {
        let command: ObjectIdentifier
        /// `nil` for a command that was left: its process is still to be reaped.
        var continuation: CheckedContinuation<Ending, Never>?
    }

    /// The running commands of this process.
    private static let running = Mutex<[pid_t: Run]>([:])
    /// Watches for their ends; only one source of a signal works at a time.
    private static let isWatching: Bool = {
        // Inherited as ignored, the kernel would drop the statuses of commands.
        signal(SIGCHLD, SIG_DFL)
        let source = DispatchSource.makeSignalSource(signal: SIGCHLD, queue: DispatchQueue(label: "earshot-commands"))
        source.setEventHandler {
            // The handler is the only owner of its source, which must live as long as the process.
            withExtendedLifetime(source) { HandlerCommand.collect() }
        }
        source.resume()
        return true
    }()

    /// The name of the command for the user, escaped.
    var name: String { (self.words.first ?? "").escapedForDisplay }

    /// Whether the command does not run now.
    var isIdle: Bool {
        Self.running.withLock { running in !running.values.contains { $0.command == ObjectIdentifier(self) && $0.continuation != nil } }
    }

    /// Finds the command, in PATH unless it has a slash.
    /// - Throws: `commandNotFound` or `commandNotRun`, as env(1) reports.
    init(_ words: [String], path variable: String? = Terminal.environment("PATH")) throws(CommandFailure) {
        self.words = words
        self.path = try Self.find(words.first ?? "", variable ?? Self.usualPath)
        _ = Self.isWatching
    }

    /// The directories in which execvp(3) looks without PATH.
    private static let usualPath = "/bin:/usr/bin"

    private static func find(_ name: String, _ variable: String) throws(CommandFailure) -> String {
        let directories = variable.split(separator: ":", omittingEmptySubsequences: false).map { $0.isEmpty ? "." : String($0) }
        var code = ENOENT
        for path in name.contains("/") ? [name] : directories.map({ "\($0)/\(name)" }) where !name.isEmpty {
            guard let status = FileStatus(path: path) else {
                if errno != ENOENT, errno != ENOTDIR { code = errno }
                continue
            }
            if status.kind == .regular, access(path, X_OK) == 0 { return path }
            code = EACCES
        }
        throw Self.failure(name, code)
    }

    private static func failure(_ name: String, _ code: CInt) -> CommandFailure {
        CommandFailure(
            code == ENOENT || code == ENOTDIR ? .commandNotFound : .commandNotRun,
            "cannot run \(name.escapedForDisplay): \(FileError.reason(code))",
            hint: code == ENOEXEC ? "begin the script with the line of its interpreter, such as #!/bin/sh" : nil)
    }

    /// Runs the command with bytes as its standard input and variables added to its environment, and waits for its end. The path of a file
    /// takes the place of the argument `{}`, or is the last argument. With `output`, the command's standard output is collected there, and
    /// otherwise it is that of this process.
    /// - Throws: a failure if the command cannot be run at all, or `FileError` if there is no memory or process for it now.
    func run(
        input: [UInt8] = [], file: String? = nil, output: CommandOutput? = nil, _ variables: HandlerVariables
    ) async throws -> Ending {
        defer { output?.end() }
        var words = self.words
        if let file {
            // Only a whole argument: within the text of a script, a shell would evaluate the name that a peer chose.
            let places = words.indices.dropFirst().filter { words[$0] == Self.placeholder }
            if places.isEmpty { words.append(file) }
            for place in places { words[place] = file }
        }
        let descriptor = input.withUnsafeBytes { earshot_memory_file($0.baseAddress, $0.count) }
        guard descriptor >= 0 else { throw FileError("hold the input of", self.name) }
        defer { close(descriptor) }
        return try await self.run(words, variables, input: descriptor, output: output?.descriptor ?? -1)
    }

    private func run(_ words: [String], _ variables: HandlerVariables, input: CInt, output: CInt) async throws -> Ending {
        let arguments = words.map { strdup($0) } + [nil]
        let added = variables.lines.map { strdup($0) }
        defer { for pointer in arguments + added { free(pointer) } }
        var code: CInt = 0
        let ending = await withCheckedContinuation { (continuation: CheckedContinuation<Ending, Never>) in
            // Within the lock: the command may end before it is among the running ones.
            code = Self.running.withLock { running in
                var process: pid_t = 0
                let environment = Self.inherited(without: variables) + added + [nil]
                let code = earshot_spawn(self.path, arguments, environment, input, output, &process)
                if code == 0 { running[process] = Run(command: ObjectIdentifier(self), continuation: continuation) }
                return code
            }
            if code != 0 { continuation.resume(returning: .left) }
        }
        switch code {
        case 0: return ending
        case EAGAIN, ENOMEM, ENFILE, EMFILE: throw FileError("run", self.words.first ?? "", code: code)
        default: throw Self.failure(self.words.first ?? "", code)
        }
    }

    /// The variables of this process, byte for byte, except those that the command gets anew.
    private static func inherited(without variables: HandlerVariables) -> [UnsafeMutablePointer<CChar>?] {
        let replaced = variables.names.map { "\($0)=" }
        var kept: [UnsafeMutablePointer<CChar>?] = []
        var place = environ
        while let variable = place.pointee {
            if !replaced.contains(where: { strncmp(variable, $0, $0.utf8.count) == 0 }) { kept.append(variable) }
            place += 1
        }
        return kept
    }

    /// Sends SIGTERM to the running commands and the processes that they have started.
    func terminate() {
        // Only `collect` reaps a process, so that these ids are still those of the commands.
        Self.running.withLock { running in
            for (process, run) in running where run.command == ObjectIdentifier(self) { kill(-process, SIGTERM) }
        }
    }

    /// Waits no longer for the running commands.
    func leave() {
        let left = Self.running.withLock { running in
            let left = running.filter { $0.value.command == ObjectIdentifier(self) }
            for process in left.keys { running[process]?.continuation = nil }
            return left
        }
        for run in left.values { run.continuation?.resume(returning: .left) }
    }

    /// Reaps the commands that have ended.
    private static func collect() {
        let ended = Self.running.withLock { running in
            let ended = running.compactMap { process, run -> (process: pid_t, run: Run, status: CInt)? in
                var status: CInt = 0
                return waitpid(process, &status, WNOHANG) == process ? (process, run, status) : nil
            }
            for end in ended { running[end.process] = nil }
            return ended
        }
        for end in ended {
            let signal = end.status & 0x7F
            end.run.continuation?.resume(returning: signal == 0 ? .exited(end.status >> 8 & 0xFF) : .killed(signal: signal))
        }
    }
}
