import Dispatch
import EarshotSafety
import Glibc
import NIOCore

/// The process's standard streams, without buffers: the kernel has all bytes when a call returns.
enum Standard {
    /// Writes data to standard output. If the reader has gone, ends the process quietly, as SIGPIPE does.
    static func write(_ text: String) throws(CommandFailure) {
        try Self.write(Array(text.utf8))
    }

    /// Writes bytes to standard output as they are.
    static func write(_ bytes: [UInt8]) throws(CommandFailure) {
        try Self.check(Self.put(bytes))
    }

    /// Writes bytes to standard output as they are, and returns 0 or the errno, for callers that must act before `check(_:)`.
    static func put(_ bytes: [UInt8]) -> CInt {
        bytes.withUnsafeBytes { Self.write($0, to: STDOUT_FILENO) }
    }

    /// Handles an errno of a write: if the reader has gone, ends the process; otherwise throws.
    static func check(_ code: CInt) throws(CommandFailure) {
        guard code != 0 else { return }
        if code == EPIPE {
            signal(SIGPIPE, SIG_DFL)
            raise(SIGPIPE)
            _exit(128 + SIGPIPE)
        }
        throw CommandFailure(.io, "cannot write to standard output: \(FileError.reason(code))")
    }

    /// Ends the process, as SIGPIPE does, once the reader of standard output has gone. Otherwise a command that waits for something to
    /// print would notice only when it prints.
    static func endWithReader() {
        guard let status = FileStatus(descriptor: STDOUT_FILENO), status.kind != .regular else { return }
        DispatchQueue(label: "earshot-output").async {
            // With no events requested, only an error or a hangup wakes the poll.
            var output = pollfd(fd: STDOUT_FILENO, events: 0, revents: 0)
            while poll(&output, 1, -1) < 0, errno == EINTR {}
            guard output.revents & Int16(POLLERR | POLLHUP) != 0 else { return }
            Interrupts.outputClosed()
        }
    }

    /// If standard output is a file, waits until its data is on disk: some disks report only then that they could not write it.
    static func sync() throws(CommandFailure) {
        try Self.check(Self.sync(STDOUT_FILENO))
    }

    /// Like `sync()`, for any descriptor; returns 0 or the errno.
    static func sync(_ descriptor: CInt) -> CInt {
        guard let status = FileStatus(descriptor: descriptor) else { return errno }
        // A pipe or a terminal has no data to sync.
        guard status.kind == .regular else { return 0 }
        while fsync(descriptor) != 0 {
            switch errno {
            case EINTR: continue
            // The file system does not support fsync; nothing better can be done.
            case EINVAL: return 0
            case let code: return code
            }
        }
        return 0
    }

    /// Writes a JSON document as one line to standard output. Characters that would move or hide text on a terminal are escaped as in JSON.
    static func write(json: [UInt8]) throws(CommandFailure) {
        try Self.write(Self.line(json: json))
    }

    /// The line for a JSON document.
    static func line(json: [UInt8]) -> [UInt8] { JSONText.escaped(json) + [UInt8(ascii: "\n")] }

    /// Writes an escaped line to standard error. A failure is ignored, since it cannot be reported.
    static func say(_ line: String) {
        _ = Array((line + "\n").utf8).withUnsafeBytes { Self.write($0, to: STDERR_FILENO) }
    }

    /// Reports a sentence to the user on standard error.
    static func note(_ sentence: String) {
        ProgressLine.leave()
        Self.say("earshot: \(sentence)")
    }

    /// Writes all bytes, and returns 0 or the errno.
    static func write(_ bytes: UnsafeRawBufferPointer, to descriptor: CInt) -> CInt { BytePipe.write(bytes, to: descriptor) }

    /// Reads at most `limit` bytes from standard input, waiting until there are some; `nil` at its end.
    static func read(limit: Int) throws(FileError) -> ByteBuffer? {
        var buffer = ByteBufferAllocator().buffer(capacity: limit)
        while true {
            var count = 0
            buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: limit) { space in
                count = Glibc.read(STDIN_FILENO, space.baseAddress, limit)
                return max(count, 0)
            }
            if count > 0 { return buffer }
            if count == 0 { return nil }
            switch errno {
            case EINTR: continue
            case EAGAIN:
                var waiting = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
                _ = poll(&waiting, 1, -1)
            default: throw FileError("read", "standard input")
            }
        }
    }

    /// Reads standard input, or another descriptor, to its end or to one byte more than the limit.
    static func readAll(
        from descriptor: CInt = STDIN_FILENO, subject: String = "standard input", limit: Int
    ) throws(FileError) -> [UInt8] {
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 64 * 1024)
        while bytes.count <= limit {
            let wanted = min(piece.count, limit + 1 - bytes.count)
            let count = piece.withUnsafeMutableBytes { Glibc.read(descriptor, $0.baseAddress, wanted) }
            if count == 0 { break }
            if count < 0 {
                switch errno {
                case EINTR: continue
                case EAGAIN:
                    var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
                    _ = poll(&waiting, 1, -1)
                    continue
                default: throw FileError("read", subject)
                }
            }
            bytes += piece[..<count]
        }
        return bytes
    }
}
