internal import Glibc

/// Tells systemd how the daemon stands (sd_notify(3)): a datagram to the socket that it names.
struct ServiceManager: Sendable {
    private let path: String?

    init(environment: [String: String]) {
        self.path = environment["NOTIFY_SOCKET"]
    }

    /// The daemon serves from now on.
    func ready() { self.send("READY=1") }
    /// The settings are being read again; `ready` follows. The time tells systemd which of several reloads it is about.
    func reloading() {
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC, &now)
        self.send("RELOADING=1\nMONOTONIC_USEC=\(Int64(now.tv_sec) * 1_000_000 + Int64(now.tv_nsec) / 1_000)")
    }
    /// The daemon has begun to stop.
    func stopping() { self.send("STOPPING=1") }

    private func send(_ state: String) {
        guard let path, path.hasPrefix("/") || path.hasPrefix("@") else { return }
        var name = Array(path.utf8)
        // An abstract name begins with a zero byte (unix(7)).
        if name[0] == UInt8(ascii: "@") { name[0] = 0 }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        guard name.count < MemoryLayout.size(ofValue: address.sun_path) else { return }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: name) }
        let descriptor = socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        let length = socklen_t((MemoryLayout<sockaddr_un>.offset(of: \.sun_path) ?? 2) + name.count)
        let bytes = Array(state.utf8)
        withUnsafePointer(to: &address) {
            _ = $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                sendto(descriptor, bytes, bytes.count, CInt(MSG_NOSIGNAL), $0, length)
            }
        }
    }
}
