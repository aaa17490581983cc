import CLinux
import Dispatch
import EarshotClient
import EarshotSafety
import EarshotWaiting
import Glibc

/// The standard output of a command, collected for a reply: a pipe that a thread reads while the command runs.
///
/// The output ends with the command, although children that outlive the command may keep the pipe open. Beyond the limit, the pipe is
/// closed, so that a command that prints without end gets SIGPIPE.
struct CommandOutput: Sendable {
    /// The most bytes of output: a reply is one message.
    static let limit = WireLimits.messageBody
    /// The size of the pipe, and the most bytes of one read.
    private static let pieceSize = 64 * 1024

    /// The writing end of the pipe, for the command.
    let descriptor: CInt
    /// The writing end of a pipe whose closing tells the thread that the command has ended.
    private let wake: CInt
    private let collected = OneShot<[UInt8]?>()

    /// Creates the pipe, and begins to read it. ``end()`` must follow.
    init() throws(FileError) {
        let (reader, descriptor) = try Self.pipe()
        let sleeper: CInt
        do throws(FileError) {
            (sleeper, self.wake) = try Self.pipe()
        } catch {
            close(reader)
            close(descriptor)
            throw error
        }
        self.descriptor = descriptor
        let collected = self.collected
        DispatchQueue(label: "earshot-command-output").async {
            collected.settle(Self.collect(from: reader, until: sleeper))
            close(reader)
            close(sleeper)
        }
    }

    private static func pipe() throws(FileError) -> (reader: CInt, writer: CInt) {
        var ends: [CInt] = [-1, -1]
        guard earshot_pipe(&ends, CInt(Self.pieceSize)) > 0 else { throw FileError("make", "a pipe") }
        return (ends[0], ends[1])
    }

    /// Ends the output, when the command has ended. Called once.
    func end() {
        close(self.wake)
        close(self.descriptor)
    }

    /// Returns the whole output after ``end()``; `nil` if it was longer than the limit.
    func bytes() async -> [UInt8]? { await self.collected.value() }

    /// Reads until the other pipe is closed, and then what is left. Returns `nil` as soon as there is more than the limit.
    private static func collect(from reader: CInt, until sleeper: CInt) -> [UInt8]? {
        _ = fcntl(reader, F_SETFL, O_NONBLOCK)
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: Self.pieceSize)
        while true {
            var ends = [pollfd(fd: reader, events: Int16(POLLIN), revents: 0), pollfd(fd: sleeper, events: Int16(POLLIN), revents: 0)]
            while poll(&ends, 2, -1) < 0, errno == EINTR {}
            while true {
                let count = piece.withUnsafeMutableBytes { Glibc.read(reader, $0.baseAddress, $0.count) }
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { break }
                bytes += piece[..<count]
                guard bytes.count <= Self.limit else { return nil }
            }
            if ends[1].revents != 0 { return bytes }
        }
    }
}
