internal import FoundationEssentials
internal import Glibc

/// The kernel's figures of this process, which Prometheus' own client libraries show as `process_*`.
struct ProcessFigures: Sendable, Hashable {
    /// Seconds of user and system time.
    var cpuSeconds: Double
    /// Bytes.
    var virtualMemory: UInt64
    var residentMemory: UInt64
    var openDescriptors: Int
    /// `nil` without a limit.
    var descriptorLimit: UInt64?
    var threads: Int
    /// By the wall clock.
    var startedAt: Date

    /// The present figures; `nil` if the kernel does not tell.
    static func now() -> ProcessFigures? {
        guard let stat = Self.text("/proc/self/stat"), let fields = Self.fields(ofStat: stat) else { return nil }
        let ticks = Double(sysconf(Int32(_SC_CLK_TCK)))
        let page = UInt64(clamping: sysconf(Int32(_SC_PAGESIZE)))
        guard ticks > 0 else { return nil }
        var sinceBoot = timespec()
        clock_gettime(CLOCK_BOOTTIME, &sinceBoot)
        let age = Double(sinceBoot.tv_sec) + Double(sinceBoot.tv_nsec) / 1e9 - Double(fields.startTicks) / ticks
        var limit = rlimit()
        let hasLimit = getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 && limit.rlim_cur != rlim_t.max
        return ProcessFigures(
            cpuSeconds: Double(fields.userTicks &+ fields.systemTicks) / ticks, virtualMemory: fields.virtualBytes,
            residentMemory: fields.residentPages.multipliedReportingOverflow(by: page).partialValue,
            openDescriptors: Self.countDescriptors(), descriptorLimit: hasLimit ? UInt64(limit.rlim_cur) : nil, threads: fields.threads,
            startedAt: Date(timeIntervalSinceNow: -max(0, age)))
    }

    /// The fields of proc_pid_stat(5) that are of use.
    struct StatFields: Hashable {
        var userTicks: UInt64
        var systemTicks: UInt64
        var threads: Int
        /// Since the machine was started.
        var startTicks: UInt64
        var virtualBytes: UInt64
        var residentPages: UInt64
    }

    /// The fields; `nil` where it is not what the kernel writes. The second field is the command in parentheses, which may hold blanks and
    /// parentheses itself.
    static func fields(ofStat text: String) -> StatFields? {
        guard let end = text.lastIndex(of: ")") else { return nil }
        let words = text[text.index(after: end)...].split { $0 == " " || $0 == "\n" }
        // The first word here is the third field.
        func number(_ field: Int) -> UInt64? { words.count > field - 3 ? UInt64(words[field - 3]) : nil }
        guard let user = number(14), let system = number(15), let threads = number(20), let start = number(22), let virtual = number(23),
            let resident = number(24)
        else { return nil }
        return StatFields(
            userTicks: user, systemTicks: system, threads: Int(clamping: threads), startTicks: start, virtualBytes: virtual,
            residentPages: resident)
    }

    private static func text(_ path: String) -> String? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = bytes.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
        return count > 0 ? String(decoding: bytes.prefix(count), as: UTF8.self) : nil
    }

    /// Without the one that the counting itself needs.
    private static func countDescriptors() -> Int {
        guard let directory = opendir("/proc/self/fd") else { return 0 }
        defer { closedir(directory) }
        var count = 0
        while let entry = readdir(directory) { if entry.pointee.d_name.0 != CChar(UInt8(ascii: ".")) { count += 1 } }
        return max(0, count - 1)
    }
}
