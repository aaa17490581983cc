internal import Glibc

/// A Unix datagram socket that only sends, without a connection: the receiver may stop and start again.
///
/// The descriptor is opened once, and closed when the last reference is released.
final class DatagramSocket: Sendable {
    private let descriptor: CInt
    private let path: String
    private let flags: CInt

    /// Creates a socket that sends to `path`, which begins with `/`, or with `@` for an abstract name (unix(7)). Returns `nil` if `path` is
    /// no such name or no socket can be created. If the receiver's queue is full, sending waits at most `patience` seconds; 0 means no
    /// waiting.
    init?(path: String, patience: Int = 0) {
        guard path.hasPrefix("/") || path.hasPrefix("@"), path.utf8.count < Self.pathCapacity, !path.utf8.contains(0) else { return nil }
        self.descriptor = socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        self.path = path
        self.flags = CInt(MSG_NOSIGNAL) | (patience > 0 ? 0 : CInt(MSG_DONTWAIT))
        guard self.descriptor >= 0 else { return nil }
        var limit = timeval(tv_sec: patience, tv_usec: 0)
        setsockopt(self.descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    }

    deinit {
        if self.descriptor >= 0 { close(self.descriptor) }
    }

    private static let pathCapacity = MemoryLayout.size(ofValue: sockaddr_un().sun_path)

    /// Sends one datagram. Returns `false` if there is no receiver, its queue is full, or the datagram is too large.
    func send(_ bytes: [UInt8]) -> Bool {
        var name = Array(self.path.utf8)
        // An abstract name begins with a zero byte.
        if name[0] == UInt8(ascii: "@") { name[0] = 0 }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: name) }
        let length = socklen_t((MemoryLayout<sockaddr_un>.offset(of: \.sun_path) ?? 2) + name.count)
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                while true {
                    let count = sendto(self.descriptor, bytes, bytes.count, self.flags, address, length)
                    if count < 0 && errno == EINTR { continue }
                    return count == bytes.count
                }
            }
        }
    }
}
