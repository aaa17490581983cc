import Glibc

/// A plain blocking stream socket with a time limit on waiting.
final class PlainSocket {
    let descriptor: CInt

    /// Connects to a TCP port of this machine, from one of its loopback addresses.
    init(port: UInt16, from source: String = "127.0.0.1") throws {
        self.descriptor = socket(AF_INET, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        guard self.descriptor >= 0 else { throw SocketFailure(action: "socket") }
        var one: CInt = 1
        setsockopt(self.descriptor, CInt(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<CInt>.size))
        try self.act("bind", Self.address(source, 0)) { bind(self.descriptor, $0, $1) }
        try self.act("connect", Self.address("127.0.0.1", port)) { connect(self.descriptor, $0, $1) }
    }

    /// Connects to a Unix socket.
    init(path: String) throws {
        self.descriptor = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        guard self.descriptor >= 0 else { throw SocketFailure(action: "socket") }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix(107)) }
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(self.descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard result == 0 else { throw SocketFailure(action: "connect") }
    }

    deinit { Glibc.close(self.descriptor) }

    private func act(_ action: String, _ address: sockaddr_in, _ call: (UnsafePointer<sockaddr>, socklen_t) -> CInt) throws {
        guard Self.act(address, call) == 0 else { throw SocketFailure(action: action) }
    }

    private static func act(_ address: sockaddr_in, _ call: (UnsafePointer<sockaddr>, socklen_t) -> CInt) -> CInt {
        var address = address
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { call($0, socklen_t(MemoryLayout<sockaddr_in>.size)) }
        }
    }

    /// Returns the descriptor of a socket that begins to connect and never blocks. The caller must close it.
    static func begin(port: UInt16, from source: String) throws -> CInt {
        let kind = CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue) | CInt(SOCK_NONBLOCK.rawValue)
        let descriptor = socket(AF_INET, kind, 0)
        guard descriptor >= 0 else { throw SocketFailure(action: "socket") }
        var one: CInt = 1
        setsockopt(descriptor, CInt(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<CInt>.size))
        // The port is chosen once the other end is known, so that one address can make thousands of connections in sequence.
        setsockopt(descriptor, CInt(IPPROTO_IP), IP_BIND_ADDRESS_NO_PORT, &one, socklen_t(MemoryLayout<CInt>.size))
        guard Self.act(Self.address(source, 0), { bind(descriptor, $0, $1) }) == 0,
            Self.act(Self.address("127.0.0.1", port), { connect(descriptor, $0, $1) }) == 0 || errno == EINPROGRESS
        else {
            let failure = SocketFailure(action: "connect")
            Glibc.close(descriptor)
            throw failure
        }
        return descriptor
    }

    private static func address(_ host: String, _ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        inet_pton(AF_INET, host, &address.sin_addr)
        return address
    }

    /// Sends all bytes; `false` if the other side has closed, or has accepted nothing for the time in seconds.
    @discardableResult
    func send(_ bytes: [UInt8], patience: Int = 10) -> Bool {
        var limit = timeval(tv_sec: patience, tv_usec: 0)
        setsockopt(self.descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes { Glibc.send(self.descriptor, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL)) }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }

    /// Returns received bytes, at least one; empty at the end of the connection, `nil` if nothing arrived within the time in milliseconds.
    func receive(within milliseconds: Int32 = 10_000) -> [UInt8]? {
        var poller = pollfd(fd: self.descriptor, events: Int16(POLLIN), revents: 0)
        guard poll(&poller, 1, milliseconds) > 0 else { return nil }
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let count = recv(self.descriptor, &buffer, buffer.count, 0)
        return count > 0 ? Array(buffer[..<count]) : []
    }

    /// Returns all bytes until the other side closes; `nil` if it does not within the time.
    func receiveAll(within milliseconds: Int32 = 15_000) -> [UInt8]? {
        var all: [UInt8] = []
        while let piece = self.receive(within: milliseconds) {
            if piece.isEmpty { return all }
            all += piece
        }
        return nil
    }

    /// Closes the sending direction.
    func finishSending() { shutdown(self.descriptor, CInt(SHUT_WR)) }
}

struct SocketFailure: Error, CustomStringConvertible {
    let action: String
    let code = errno
    var description: String { "\(self.action): \(String(cString: strerror(self.code)))" }
}
