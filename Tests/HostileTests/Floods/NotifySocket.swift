import Foundation
import Glibc
import Synchronization

/// A substitute for systemd (sd_notify(3)): receives the daemon's notifications, and records the watchdog's.
final class NotifySocket: Sendable {
    private let descriptor: CInt
    private let feedings: Mutex<(last: ContinuousClock.Instant, longest: Duration, count: Int)>

    /// Listens at that path from now on.
    init(path: String) throws {
        self.descriptor = socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        guard self.descriptor >= 0 else { throw SocketFailure(action: "socket") }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix(107)) }
        let descriptor = self.descriptor
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) }
        }
        self.feedings = Mutex((.now, .zero, 0))
        guard result == 0 else { throw SocketFailure(action: "bind") }
        // The thread holds the value for one iteration at a time, so that it ends with it.
        Thread.detachNewThread { [weak self] in
            while self?.listen() == true {}
        }
    }

    deinit { Glibc.close(self.descriptor) }

    private func listen() -> Bool {
        var poller = pollfd(fd: self.descriptor, events: Int16(POLLIN), revents: 0)
        guard poll(&poller, 1, 100) > 0 else { return true }
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = recv(self.descriptor, &buffer, buffer.count, 0)
        guard count > 0, String(decoding: buffer[..<count], as: UTF8.self).contains("WATCHDOG=1") else { return count >= 0 }
        self.feedings.withLock { ($0.last, $0.longest, $0.count) = (.now, max($0.longest, .now - $0.last), $0.count + 1) }
        return true
    }

    /// The longest pause between watchdog notifications so far.
    var longestPause: Duration { self.feedings.withLock { max($0.longest, .now - $0.last) } }

    var count: Int { self.feedings.withLock { $0.count } }
}
