internal import CLinux
import EarshotSafety
import Glibc
import NIOCore

/// A request on a connection of its own, for a thread that may block. A body of unlimited length moves within the kernel, between the
/// socket and this process's input or output; everything else is read and written here.
///
/// The class implements the part of HTTP/1.1 that it needs: one request, whose body is chunked (RFC 9112 section 7.1), and its answer.
final class StreamConnection {
    /// The most bytes of a head.
    private static let lineLimit = 16 * 1024

    private let path: String
    let socket: StreamSocket
    private var descriptor: CInt { self.socket.descriptor }
    /// Bytes that were read but not used yet.
    private var buffer = ByteBuffer()

    /// Connects to the daemon.
    ///
    /// On failure, the socket's own `deinit` closes it. Closing it twice could close another thread's descriptor.
    /// - Throws: `unreachable`.
    init(socketPath: String) throws(ControlError) {
        // A daemon that goes away must cause an error, not SIGPIPE; splice(2) has no flag for that.
        signal(SIGPIPE, SIG_IGN)
        self.path = socketPath
        self.socket = StreamSocket(descriptor: Glibc.socket(AF_UNIX, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0))
        guard self.descriptor >= 0 else { throw Self.unreachable(socketPath, errno) }
        let result: CInt
        do {
            result = try SocketAddress(unixDomainSocketPath: socketPath).withSockAddr { address, length in
                connect(self.descriptor, address, socklen_t(length))
            }
        } catch {
            throw .unreachable(path: socketPath, reason: "the path is too long for a socket", code: nil)
        }
        guard result == 0 else { throw Self.unreachable(socketPath, errno) }
        // Non-blocking, so that an answer is noticed while a body is written.
        _ = fcntl(self.descriptor, F_SETFL, fcntl(self.descriptor, F_GETFL) | O_NONBLOCK)
        // The kernel's limit for an unprivileged process; the kernel doubles the given value.
        var size: CInt = 1024 * 1024
        setsockopt(self.descriptor, SOL_SOCKET, SO_SNDBUF, &size, socklen_t(MemoryLayout<CInt>.size))
    }

    private static func unreachable(_ path: String, _ code: CInt) -> ControlError {
        .unreachable(path: path, reason: SystemError.reason(code), code: code)
    }

    private static func pipe() throws(ControlError) -> BytePipe {
        do {
            return try BytePipe()
        } catch {
            throw .source(error.description)
        }
    }

    private func lost(_ reason: String) -> ControlError { .lost(path: self.path, reason: reason) }

    // MARK: Sending

    /// Writes a request's head; with `chunks`, a chunked body follows. `upgrade` names the protocol that follows the answer 101. If the
    /// daemon has gone, reading the answer reports that.
    func send(_ method: String, _ path: String, chunks: Bool = false, upgrade: String? = nil) throws(ControlError) {
        var head = "\(method) \(path) HTTP/1.1\r\nHost: localhost\r\nUser-Agent: earshot/\(EarshotVersion.current)\r\n"
        head += upgrade.map { "Connection: Upgrade\r\nUpgrade: \($0)\r\n" } ?? "Connection: close\r\n"
        if chunks { head += "Content-Type: application/octet-stream\r\nTransfer-Encoding: chunked\r\n" }
        // If the other side answered before the request, reading that answer shows that it is not the daemon.
        _ = try self.write("\(head)\r\n", more: false)
    }

    /// Sends everything from `input` as the body, until `input` ends or the daemon answers.
    /// - Throws: `source` if `input` cannot be read, `lost`.
    func sendBody(from input: CInt) throws(ControlError) {
        let pipe = try Self.pipe()
        var ending = ""
        while true {
            guard self.waits(for: input, POLLIN) else { return }
            let count = pipe.fill(from: input)
            if count < 0 {
                if errno == EAGAIN { continue }
                throw .source("cannot read standard input: \(SystemError.reason(errno))")
            }
            guard count > 0 else {
                _ = try self.write("\(ending)0\r\n\r\n", more: false)
                return
            }
            guard try self.write("\(ending)\(String(count, radix: 16))\r\n", more: true) else { return }
            ending = "\r\n"
            var left = count
            while left > 0 {
                let moved = pipe.drain(left, to: self.descriptor)
                if moved > 0 {
                    left -= moved
                } else if moved == 0 || errno != EAGAIN {
                    // The daemon has gone; its answer may have the reason.
                    return
                } else if !self.waits(for: self.descriptor, POLLOUT) {
                    return
                }
            }
        }
    }

    /// Passes a descriptor with one byte. If the daemon has gone, reading the answer reports that.
    func pass(_ descriptor: CInt) {
        while earshot_send_descriptor(self.descriptor, descriptor) != 0 {
            guard errno == EAGAIN, self.waits(for: self.descriptor, POLLOUT) else { return }
        }
    }

    /// Writes the whole text; returns `false` if the daemon answers or has gone.
    private func write(_ text: String, more: Bool) throws(ControlError) -> Bool {
        let bytes = Array(text.utf8)
        var written = 0
        while written < bytes.count {
            let count = bytes[written...].withUnsafeBytes { earshot_send(self.descriptor, $0.baseAddress, $0.count, more ? 1 : 0) }
            if count >= 0 {
                written += count
            } else if errno != EAGAIN || !self.waits(for: self.descriptor, POLLOUT) {
                return false
            }
        }
        return true
    }

    /// Waits until the descriptor is ready; returns `false` if the daemon answers first or has gone.
    private func waits(for descriptor: CInt, _ events: Int32) -> Bool {
        while true {
            var waiting = [
                pollfd(fd: self.descriptor, events: Int16(POLLIN), revents: 0), pollfd(fd: descriptor, events: Int16(events), revents: 0),
            ]
            guard poll(&waiting, 2, -1) > 0 else { continue }
            if waiting[0].revents != 0 { return false }
            if waiting[1].revents != 0 { return true }
        }
    }

    // MARK: Receiving

    /// Receives the answer's status and fields.
    /// - Throws: `lost`, `malformed`.
    func receiveHead() throws(ControlError) -> StreamAnswer {
        while true {
            // Reads only the head: the kernel moves the body.
            try self.receiveHead { bytes throws(ControlError) in
                guard StreamAnswer.mayBegin(bytes) else { throw .malformed("what listens at \(self.path) speaks no HTTP") }
                return StreamAnswer.length(of: bytes)
            }
            guard let answer = StreamAnswer(self.buffer) else { throw .malformed("the daemon's answer is not HTTP") }
            self.buffer.clear()
            if answer.status != 100 { return answer }
        }
    }

    /// Receives a line of an answer that is lines, without its end.
    /// - Throws: `lost`, `malformed`.
    func receiveLine() throws(ControlError) -> [UInt8] {
        while true {
            if let end = self.buffer.readableBytesView.firstIndex(of: UInt8(ascii: "\n")) {
                let line = self.buffer.readBytes(length: end - self.buffer.readerIndex) ?? []
                self.buffer.moveReaderIndex(forwardBy: 1)
                return line
            }
            guard self.buffer.readableBytes <= ControlClient.answerLimit else { throw .malformed("the daemon's line has no end") }
            try self.receive(Self.lineLimit, flags: 0)
        }
    }

    /// Receives one byte with a descriptor, which is close-on-exec. Returns `nil` if the byte came alone: a relay between this process and the
    /// daemon passes no descriptors.
    /// - Throws: `lost`, `malformed`.
    func receiveDescriptor() throws(ControlError) -> CInt? {
        while true {
            var descriptor: CInt = -1
            let count = earshot_receive_descriptor(self.descriptor, &descriptor)
            if count == 1 { return descriptor }
            if count == 0 { return nil }
            guard count < 0 else { throw .malformed("the daemon passed \(count) descriptors") }
            guard errno == EAGAIN else { throw self.lost(errno == EPIPE ? "it closed the connection" : SystemError.reason(errno)) }
            self.waitForAnswer()
        }
    }

    /// Receives the body of an answer that is not a stream.
    /// - Throws: `lost`, `malformed`.
    func receiveAll(of answer: StreamAnswer) throws(ControlError) -> [UInt8] {
        guard let length = answer.contentLength, length <= ControlClient.answerLimit else {
            throw .malformed("the daemon's answer does not say how long it is")
        }
        while self.buffer.readableBytes < length { try self.receive(min(length - self.buffer.readableBytes, Self.lineLimit), flags: 0) }
        return self.buffer.readBytes(length: length) ?? []
    }

    /// Moves the answer's chunked body to `output`, until the body ends.
    /// - Throws: `lost`, `malformed`; `output` if `output` cannot be written.
    func receiveBody(to output: CInt) throws(ControlError) {
        let pipe = try Self.pipe()
        var isFirst = true
        while case let count = try self.receiveChunkHead(isFirst: isFirst), count > 0 {
            isFirst = false
            var left = count
            while left > 0 {
                let taken = pipe.fill(from: self.descriptor, upTo: left)
                if taken == 0 { throw self.lost("it closed the connection") }
                if taken < 0 {
                    guard errno == EAGAIN else { throw self.lost(SystemError.reason(errno)) }
                    self.waitForAnswer()
                    continue
                }
                let code = pipe.drain(all: taken, to: output)
                if code != 0 { throw .output(reason: SystemError.reason(code), code: code) }
                left -= taken
            }
        }
        // Reads the line after the last chunk: if a client closes with unread data, the daemon assumes that it has not received everything.
        self.buffer.clear()
        while self.buffer.readableBytes < 2 { try self.receive(2 - self.buffer.readableBytes, flags: 0) }
        self.buffer.clear()
    }

    /// Receives a chunk's length, after the end of the previous chunk; 0 at the end of the body.
    private func receiveChunkHead(isFirst: Bool) throws(ControlError) -> Int {
        try self.receiveHead { bytes throws(ControlError) in ChunkHead.length(of: bytes, isFirst: isFirst) }
        guard let count = ChunkHead.chunk(self.buffer.readableBytesView, isFirst: isFirst) else {
            throw .malformed("the daemon's answer is not chunked")
        }
        self.buffer.clear()
        return count
    }

    /// Reads exactly one head. `length` returns the head's length, or `nil` while bytes are missing.
    private func receiveHead(_ length: (ByteBufferView) throws(ControlError) -> Int?) throws(ControlError) {
        while self.buffer.readableBytes < Self.lineLimit {
            let before = self.buffer.readableBytes
            try self.receive(Self.lineLimit, flags: CInt(MSG_PEEK))
            let found = try length(self.buffer.readableBytesView)
            let end = found ?? self.buffer.readableBytes
            self.buffer.moveWriterIndex(to: self.buffer.readerIndex + before)
            while self.buffer.readableBytes < end { try self.receive(end - self.buffer.readableBytes, flags: 0) }
            if found != nil { return }
        }
        throw .malformed("the daemon's answer has a head without an end")
    }

    /// Reads at least one byte and at most `limit` bytes.
    private func receive(_ limit: Int, flags: CInt) throws(ControlError) {
        while true {
            var count = 0
            self.buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: limit) { space in
                count = recv(self.descriptor, space.baseAddress, limit, flags)
                return max(count, 0)
            }
            if count > 0 { return }
            if count == 0 { throw self.lost("it closed the connection") }
            switch errno {
            case EAGAIN: self.waitForAnswer()
            case EINTR: break
            default: throw self.lost(SystemError.reason(errno))
            }
        }
    }

    private func waitForAnswer() {
        var waiting = pollfd(fd: self.descriptor, events: Int16(POLLIN), revents: 0)
        _ = poll(&waiting, 1, -1)
    }
}

/// A socket, closed when the last reference is released.
final class StreamSocket: Sendable {
    let descriptor: CInt

    init(descriptor: CInt) { self.descriptor = descriptor }

    deinit {
        if self.descriptor >= 0 { close(self.descriptor) }
    }

    /// Shuts the connection down, so that a blocked thread returns. May be called from any thread.
    func interrupt() { shutdown(self.descriptor, CInt(SHUT_RDWR)) }
}
