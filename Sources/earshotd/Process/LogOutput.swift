internal import FoundationEssentials
internal import Glibc
internal import Synchronization

/// Where the log goes: the journal, or standard error. Never waits for either: a reader that has stopped reading costs lines, not the daemon.
final class LogOutput: Sendable {
    /// The journal's own socket, for entries with fields.
    static let journalPath = "/run/systemd/journal/socket"

    private let journal: DatagramSocket?
    private let isJournal: Bool
    private let descriptor: CInt
    /// Lines of several threads do not mix, and none of them is between the look for room and the writing of another.
    private let turn = Mutex(())

    /// The output of a process with this environment.
    convenience init(environment: [String: String]) {
        let isJournal = Self.standardErrorIsJournal(environment)
        self.init(descriptor: STDERR_FILENO, isJournal: isJournal, journalPath: isJournal ? Self.journalPath : nil)
    }

    /// An output to a descriptor, which the journal reads where `isJournal` says so, and to the journal where its socket is given.
    init(descriptor: CInt, isJournal: Bool, journalPath: String?) {
        self.descriptor = descriptor
        self.isJournal = isJournal
        self.journal = journalPath.flatMap { DatagramSocket(path: $0) }
    }

    func write(_ line: LogLine) {
        if let journal, journal.send(line.journalEntry.bytes) { return }
        let bytes = Array((self.isJournal ? line.journalLine : line.line(at: Date())).utf8)
        self.turn.withLock { _ in
            var waiting = pollfd(fd: self.descriptor, events: Int16(POLLOUT), revents: 0)
            // Room for a whole line, which a pipe that says so has.
            guard poll(&waiting, 1, 0) > 0, waiting.revents & Int16(POLLOUT) != 0 else { return }
            _ = Glibc.write(self.descriptor, bytes, bytes.count)
        }
    }

    /// Whether standard error is the journal's stream (systemd.exec(5), `JOURNAL_STREAM`), and not a redirection.
    static func standardErrorIsJournal(_ environment: [String: String]) -> Bool {
        guard let inode = environment["JOURNAL_STREAM"]?.split(separator: ":").last else { return false }
        // The kernel's name of the socket behind the descriptor holds its inode (proc_pid_fd(5)).
        var buffer = [CChar](repeating: 0, count: 64)
        let count = readlink("/proc/self/fd/2", &buffer, buffer.count)
        guard count > 0 else { return false }
        return String(decoding: buffer[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self) == "socket:[\(inode)]"
    }
}
