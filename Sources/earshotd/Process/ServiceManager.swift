internal import Glibc

/// Reports the daemon's state to systemd (sd_notify(3)), with datagrams to the socket that systemd names.
struct ServiceManager: Sendable {
    /// The longest time, in seconds, to wait for room in systemd's queue: a lost `READY=1` would make the start fail.
    private static let patience = 1

    private let socket: DatagramSocket?

    init(environment: [String: String]) {
        self.socket = environment["NOTIFY_SOCKET"].flatMap { DatagramSocket(path: $0, patience: Self.patience) }
    }

    /// Whether there is a service manager.
    var isThere: Bool { self.socket != nil }

    /// Reports that the daemon serves, after a start or a reload.
    func ready() { self.send("READY=1") }

    /// Reports that a reload has begun; `ready` follows. The time identifies the reload.
    func reloading() {
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC, &now)
        self.send("RELOADING=1\nMONOTONIC_USEC=\(Int64(now.tv_sec) * 1_000_000 + Int64(now.tv_nsec) / 1_000)")
    }

    /// Sets the line in `systemctl status`.
    func status(_ line: String) { self.send("STATUS=\(line)") }

    /// Reports that every part of the daemon works.
    func feedWatchdog() { self.send("WATCHDOG=1") }

    /// Reports that the daemon has begun to stop.
    func stopping() { self.send("STOPPING=1\nSTATUS=stopping") }

    private func send(_ state: String) {
        _ = self.socket?.send(Array(state.utf8))
    }
}
