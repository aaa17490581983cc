import Dispatch
import EarshotSafety
import Glibc
import NIOCore

/// The process's standard streams. Nothing is buffered here: what was written is the kernel's when the call returns.
enum Standard {
    /// Writes data to standard output. A reader that went away ends the process quietly, as SIGPIPE does.
    static func write(_ text: String) throws(CommandFailure) {
        try Self.write(Array(text.utf8))
    }

    /// Writes bytes to standard output as they are.
    static func write(_ bytes: [UInt8]) throws(CommandFailure) {
        try Self.check(Self.put(bytes))
    }

    /// Writes bytes to standard output as they are, and returns 0 or the errno: for who has something to do before `check`.
    static func put(_ bytes: [UInt8]) -> CInt {
        bytes.withUnsafeBytes { Self.write($0, to: STDOUT_FILENO) }
    }

    /// What becomes of an errno: a reader that went away ends the process, anything else is an error.
    static func check(_ code: CInt) throws(CommandFailure) {
        guard code != 0 else { return }
        if code == EPIPE {
            signal(SIGPIPE, SIG_DFL)
            raise(SIGPIPE)
            _exit(128 + SIGPIPE)
        }
        throw CommandFailure(.io, "cannot write to standard output: \(FileError.reason(code))")
    }

    /// Ends the process, as SIGPIPE does, once the reader of standard output has gone: a command that waits for something to print would
    /// find out only when it prints.
    static func endWithReader() {
        guard let status = FileStatus(descriptor: STDOUT_FILENO), status.kind != .regular else { return }
        DispatchQueue(label: "earshot-output").async {
            // Without events of its own, only the end of the other side wakes it.
            var output = pollfd(fd: STDOUT_FILENO, events: 0, revents: 0)
            while poll(&output, 1, -1) < 0, errno == EINTR {}
            guard output.revents & Int16(POLLERR | POLLHUP) != 0 else { return }
            Interrupts.outputClosed()
        }
    }

    /// Waits until what was written to standard output is on disk, where that is a file: some disks say only then that they could not take it.
    static func sync() throws(CommandFailure) {
        try Self.check(Self.sync(STDOUT_FILENO))
    }

    /// The same for any descriptor; returns 0 or the errno.
    static func sync(_ descriptor: CInt) -> CInt {
        guard let status = FileStatus(descriptor: descriptor) else { return errno }
        // A pipe or a terminal has handed it on.
        guard status.kind == .regular else { return 0 }
        while fsync(descriptor) != 0 {
            switch errno {
            case EINTR: continue
            // Of a file system that knows no such thing; there is nothing better to do there.
            case EINVAL: return 0
            case let code: return code
            }
        }
        return 0
    }

    /// Writes a JSON document as one line to standard output; what would move or hide something on a terminal is escaped the JSON way.
    static func write(json: [UInt8]) throws(CommandFailure) {
        try Self.write(Self.line(json: json))
    }

    /// A JSON document as it is written.
    static func line(json: [UInt8]) -> [UInt8] { JSONText.escaped(json) + [UInt8(ascii: "\n")] }

    /// Writes a line, escaped already, to standard error; nothing can be done about a failure of that.
    static func say(_ line: String) {
        _ = Array((line + "\n").utf8).withUnsafeBytes { Self.write($0, to: STDERR_FILENO) }
    }

    /// Tells a person what happens, on standard error.
    static func note(_ sentence: String) {
        ProgressLine.leave()
        Self.say("earshot: \(sentence)")
    }

    /// Writes all of it, and returns 0 or the errno.
    static func write(_ bytes: UnsafeRawBufferPointer, to descriptor: CInt) -> CInt { BytePipe.write(bytes, to: descriptor) }

    /// What standard input has now, at most `limit` bytes, or waits until it has something; `nil` at its end.
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
