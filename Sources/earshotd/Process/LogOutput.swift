internal import FoundationEssentials
internal import Glibc
internal import Synchronization

/// The destination of the log: the journal, or standard error. Writing never blocks: if the reader has stopped reading, lines are lost.
final class LogOutput: Sendable {
    /// The journal's socket for entries with fields.
    static let journalPath = "/run/systemd/journal/socket"

    private let journal: DatagramSocket?
    private let isJournal: Bool
    private let descriptor: CInt
    /// Serialises writers, so that lines do not mix, and no other thread writes between the check for room and the write.
    private let turn = Mutex(())

    /// Creates the output of a process with this environment.
    convenience init(environment: [String: String]) {
        let isJournal = Self.standardErrorIsJournal(environment)
        self.init(descriptor: STDERR_FILENO, isJournal: isJournal, journalPath: isJournal ? Self.journalPath : nil)
    }

    /// Creates an output to a descriptor, which is the journal's stream if `isJournal`, and to the journal's socket if its path is given.
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
            // A pipe that reports room has room for a whole line.
            guard poll(&waiting, 1, 0) > 0, waiting.revents & Int16(POLLOUT) != 0 else { return }
            _ = Glibc.write(self.descriptor, bytes, bytes.count)
        }
    }

    /// Whether standard error is the journal's stream (systemd.exec(5), `JOURNAL_STREAM`), and not a redirection.
    static func standardErrorIsJournal(_ environment: [String: String]) -> Bool {
        guard let inode = environment["JOURNAL_STREAM"]?.split(separator: ":").last else { return false }
        // The kernel's name for the socket behind the descriptor contains its inode (proc_pid_fd(5)).
        var buffer = [CChar](repeating: 0, count: 64)
        let count = readlink("/proc/self/fd/2", &buffer, buffer.count)
        guard count > 0 else { return false }
        return String(decoding: buffer[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self) == "socket:[\(inode)]"
    }
}
