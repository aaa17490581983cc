internal import Glibc

/// Tells systemd how the daemon stands (sd_notify(3)): datagrams to the socket that it names.
struct ServiceManager: Sendable {
    /// Seconds that systemd may take to empty its queue: a lost `READY=1` would cost the start.
    private static let patience = 1

    private let socket: DatagramSocket?

    init(environment: [String: String]) {
        self.socket = environment["NOTIFY_SOCKET"].flatMap { DatagramSocket(path: $0, patience: Self.patience) }
    }

    /// Whether the service manager listens.
    var isThere: Bool { self.socket != nil }

    /// The daemon serves from now on, or again.
    func ready() { self.send("READY=1") }

    /// The settings are being read again; `ready` follows. The time tells systemd which of several reloads it is about.
    func reloading() {
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC, &now)
        self.send("RELOADING=1\nMONOTONIC_USEC=\(Int64(now.tv_sec) * 1_000_000 + Int64(now.tv_nsec) / 1_000)")
    }

    /// What `systemctl status` shows: one line.
    func status(_ line: String) { self.send("STATUS=\(line)") }

    /// Every part of the daemon works.
    func feedWatchdog() { self.send("WATCHDOG=1") }

    /// The daemon has begun to stop.
    func stopping() { self.send("STOPPING=1\nSTATUS=stopping") }

    private func send(_ state: String) {
        _ = self.socket?.send(Array(state.utf8))
    }
}
