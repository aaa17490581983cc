import EarshotSafety
import Glibc

/// Connection attempts that show whether a process listens.
enum SocketProbe {
    /// The longest time for an answer from an address of this machine, in milliseconds.
    static let patience: CInt = 2_000

    /// Connects to a Unix socket. Returns the descriptor, or the errno.
    static func connect(path: String) -> (descriptor: CInt, code: CInt) {
        let descriptor = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue) | CInt(SOCK_NONBLOCK.rawValue), 0)
        guard descriptor >= 0 else { return (-1, errno) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let fits = withUnsafeMutableBytes(of: &address.sun_path) { field in
            guard path.utf8.count < field.count else { return false }
            field.copyBytes(from: path.utf8)
            return true
        }
        guard fits else {
            close(descriptor)
            return (-1, ENAMETOOLONG)
        }
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        let code = errno
        // EAGAIN means that a process listens but is busy.
        if result == 0 || code == EAGAIN { return (descriptor, 0) }
        close(descriptor)
        return (-1, code)
    }

    /// Whether a process accepts connections at the socket.
    static func answers(path: String) -> Bool {
        let (descriptor, code) = self.connect(path: path)
        if descriptor >= 0 { close(descriptor) }
        return code == 0
    }

    /// Sends a line to a Unix socket. Returns whether anything came back; `nil` if no process accepts connections.
    static func talks(path: String, line: String) -> Bool? {
        let (descriptor, code) = self.connect(path: path)
        guard code == 0, descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        let bytes = Array(line.utf8)
        guard send(descriptor, bytes, bytes.count, CInt(MSG_NOSIGNAL)) == bytes.count else { return false }
        var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        guard poll(&waiting, 1, Self.patience) == 1 else { return false }
        var byte: UInt8 = 0
        return recv(descriptor, &byte, 1, 0) == 1
    }

    /// Connects to a numeric address by TCP.
    static func connect(host: String, port: Int) -> DoctorFacts.Attempt.Result {
        var hints = addrinfo()
        hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV
        hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
        var found: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, "\(port)", &hints, &found) == 0, let address = found?.pointee else { return .error("not an address") }
        defer { freeaddrinfo(found) }
        let kind = CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue) | CInt(SOCK_NONBLOCK.rawValue)
        let descriptor = socket(address.ai_family, kind, 0)
        guard descriptor >= 0 else { return .error(FileError.reason(errno)) }
        defer { close(descriptor) }
        if Glibc.connect(descriptor, address.ai_addr, address.ai_addrlen) == 0 { return .connected }
        guard errno == EINPROGRESS else { return .error(FileError.reason(errno)) }
        var waiting = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        guard poll(&waiting, 1, Self.patience) == 1 else { return .silence }
        var code: CInt = 0
        var size = socklen_t(MemoryLayout<CInt>.size)
        guard getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &size) == 0 else { return .error(FileError.reason(errno)) }
        return code == 0 ? .connected : .error(FileError.reason(code))
    }
}
