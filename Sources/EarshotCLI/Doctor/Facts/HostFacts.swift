import CLinux
import EarshotSafety
import FoundationEssentials
import Glibc

extension DoctorFacts.Avahi {
    /// The socket of avahi-daemon's simple protocol.
    static let socketPath = "/run/avahi-daemon/socket"

    static func gather() -> DoctorFacts.Avahi {
        let state: State =
            switch SocketProbe.talks(path: Self.socketPath, line: "HELP\n") {
            case true?: .answers
            case false?: .silent
            case nil: .stopped
            }
        return DoctorFacts.Avahi(isInstalled: ToolRun.find("avahi-daemon") != nil, state: state)
    }
}

extension DoctorFacts.Bus {
    /// The system bus's default path, unless DBUS_SYSTEM_BUS_ADDRESS is set (D-Bus specification, "System message bus").
    static let standardPath = "/run/dbus/system_bus_socket"

    static func gather() -> DoctorFacts.Bus {
        let path = Self.path(address: Terminal.environment("DBUS_SYSTEM_BUS_ADDRESS"))
        return DoctorFacts.Bus(path: path, isRunning: SocketProbe.answers(path: path))
    }

    /// The path in an address such as `unix:path=/run/dbus/system_bus_socket`.
    static func path(address: String?) -> String {
        let options = (address ?? "").split(separator: ";").first { $0.hasPrefix("unix:") }?.dropFirst("unix:".count).split(separator: ",")
        return options?.first { $0.hasPrefix("path=") }.map { String($0.dropFirst("path=".count)) } ?? Self.standardPath
    }
}

extension DoctorFacts.Firewall {
    static func gather() -> DoctorFacts.Firewall {
        guard let nft = ToolRun.find("nft") else { return .noTool }
        guard let run = ToolRun.run(nft, ["-j", "list", "ruleset"]) else { return .unreadable("nft cannot be started") }
        guard let status = run.status else { return .unreadable("nft takes too long") }
        guard status == 0 else {
            if run.errors.contains("not permitted") { return .notPermitted }
            return .unreadable(run.errors.split(separator: "\n").first.map(String.init) ?? "nft ends with \(status)")
        }
        // Without permission, older versions of nft print no rules, and no error either.
        guard geteuid() == 0 else { return .notPermitted }
        do {
            return .rules(try NftRuleset(json: run.output))
        } catch {
            return .unreadable("nft's answer makes no sense")
        }
    }
}

extension DoctorFacts.Clock {
    /// systemd's own service (a separate package on Debian), and the other services that `timedatectl set-ntp` starts.
    private static let keeperOfSystemd = "/usr/lib/systemd/systemd-timesyncd"
    private static let keepers = ["chronyd", "ntpd"]

    static func gather() -> DoctorFacts.Clock {
        let answer = earshot_clock_is_synchronised()
        let hasKeeper = access(Self.keeperOfSystemd, X_OK) == 0 || Self.keepers.contains { ToolRun.find($0) != nil }
        return DoctorFacts.Clock(now: Date(), isSynchronised: answer < 0 ? nil : answer == 1, hasKeeper: hasKeeper)
    }
}

extension DoctorFacts.Disk {
    /// Examines the daemon's state directory, or the directory that the daemon would use.
    static func gather(stateDirectory: String?, choice: DoctorFacts.Socket.Choice) -> DoctorFacts.Disk {
        guard let path = stateDirectory ?? Self.standardDirectory(choice) else { return .unknown }
        var status = statvfs()
        guard statvfs(path, &status) == 0 else { return .failed(path: path, FileError.reason(errno)) }
        // A full or read-only disk has a finding of its own.
        let isWorthTrying = status.f_bavail > 0 && status.f_flag & UInt(ST_RDONLY) == 0
        if isWorthTrying, let reason = Self.writeFailure(path) { return .unwritable(path: path, reason) }
        let unit = UInt64(status.f_frsize)
        return .space(
            path: path,
            Space(
                total: Self.product(UInt64(status.f_blocks), unit), free: Self.product(UInt64(status.f_bavail), unit),
                isReadOnly: status.f_flag & UInt(ST_RDONLY) != 0, inodes: UInt64(status.f_files),
                freeInodes: UInt64(status.f_favail)))
    }

    /// Writes an unnamed file in a directory and syncs it to disk. Returns the reason of a failure; `nil` if this succeeded, or if the
    /// caller may not create files there, since the daemon runs as another user.
    private static func writeFailure(_ path: String) -> String? {
        let directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard directory >= 0 else { return nil }
        defer { close(directory) }
        let descriptor = earshot_open_unnamed(directory, 0o600)
        guard descriptor >= 0 else {
            return [EACCES, EPERM, EROFS, EOPNOTSUPP, EISDIR].contains(errno) ? nil : FileError.reason(errno)
        }
        defer { close(descriptor) }
        let bytes = [UInt8](repeating: 0xE5, count: Self.triedBytes)
        guard bytes.withUnsafeBytes({ BytePipe.write($0, to: descriptor) }) == 0, fsync(descriptor) == 0 else {
            return FileError.reason(errno)
        }
        return nil
    }

    /// The size of the write probe, in bytes: one block.
    private static let triedBytes = 4096

    private static func standardDirectory(_ choice: DoctorFacts.Socket.Choice) -> String? {
        let own = Terminal.environment("XDG_STATE_HOME") ?? Terminal.environment("HOME").map { "\($0)/.local/state" }
        let candidates = choice == .system ? ["/var/lib/earshot"] : own.map { ["\($0)/earshot"] } ?? []
        return candidates.first { access($0, F_OK) == 0 }
    }

    private static func product(_ count: UInt64, _ unit: UInt64) -> UInt64 {
        let (product, overflow) = count.multipliedReportingOverflow(by: unit)
        return overflow ? .max : product
    }
}
