import EarshotSafety
import Glibc

/// One run of a system program: its exit status and output, within a time limit.
struct ToolRun: Hashable, Sendable {
    /// The exit status; `nil` if the program took too long and was killed.
    let status: Int32?
    let output: [UInt8]
    let errors: String

    /// The longest time for a program, in milliseconds.
    static let patience: Int32 = 5_000
    /// The most output that is read, in bytes: a ruleset of tens of thousands of rules.
    static let outputLimit = 32 * 1024 * 1024

    /// The path of a program, in PATH or in one of the system's directories, some of which an ordinary user's PATH lacks.
    static func find(_ name: String, path: String? = Terminal.environment("PATH")) -> String? {
        let directories =
            (path ?? "").split(separator: ":").map(String.init) + ["/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin", "/bin"]
        return directories.filter { $0.hasPrefix("/") }.map { "\($0)/\(name)" }.first { access($0, X_OK) == 0 }
    }

    /// Runs a program with an open file as its standard input, or without input; `nil` if it cannot be started.
    static func run(
        _ program: String, _ arguments: [String], environment: [String] = ["LC_ALL=C", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"],
        input: CInt? = nil
    ) -> ToolRun? {
        var output: [CInt] = [-1, -1]
        var errors: [CInt] = [-1, -1]
        guard pipe(&output) == 0 else { return nil }
        guard pipe(&errors) == 0 else {
            output.forEach { close($0) }
            return nil
        }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        if let input {
            posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO)
        } else {
            posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        }
        posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO)
        posix_spawn_file_actions_adddup2(&actions, errors[1], STDERR_FILENO)
        for descriptor in output + errors { posix_spawn_file_actions_addclose(&actions, descriptor) }
        let words = ([program] + arguments).map { strdup($0) } + [nil]
        let variables = environment.map { strdup($0) } + [nil]
        defer { for pointer in words + variables { free(pointer) } }
        var process: pid_t = 0
        let failure = posix_spawn(&process, program, &actions, nil, words, variables)
        close(output[1])
        close(errors[1])
        defer {
            close(output[0])
            close(errors[0])
        }
        guard failure == 0 else { return nil }
        let texts = Self.read([output[0], errors[0]])
        if texts == nil { kill(process, SIGKILL) }
        var status: CInt = 0
        while waitpid(process, &status, 0) < 0 && errno == EINTR {}
        guard let texts else { return ToolRun(status: nil, output: [], errors: "") }
        let signal = status & 0x7F
        return ToolRun(
            status: signal == 0 ? (status >> 8) & 0xFF : 128 + signal, output: texts[0], errors: String(decoding: texts[1], as: UTF8.self))
    }

    /// Reads all descriptors to their ends; `nil` if that takes too long or is too much.
    private static func read(_ descriptors: [CInt]) -> [[UInt8]]? {
        var texts = descriptors.map { _ in [UInt8]() }
        var open = Set(descriptors.indices)
        let deadline = ContinuousClock.now + .milliseconds(Int(Self.patience))
        var piece = [UInt8](repeating: 0, count: 64 * 1024)
        while !open.isEmpty {
            let left = (deadline - ContinuousClock.now) / .milliseconds(1)
            guard left > 0 else { return nil }
            let waited = open.sorted()
            var polled = waited.map { pollfd(fd: descriptors[$0], events: Int16(POLLIN), revents: 0) }
            guard poll(&polled, nfds_t(polled.count), CInt(left.rounded(.up))) >= 0 || errno == EINTR else { return nil }
            for (index, state) in zip(waited, polled) where state.revents != 0 {
                let count = Glibc.read(descriptors[index], &piece, piece.count)
                if count > 0 { texts[index] += piece[..<count] } else if count == 0 || errno != EINTR { open.remove(index) }
                guard texts[index].count <= Self.outputLimit else { return nil }
            }
        }
        return texts
    }
}
