internal import FoundationEssentials
internal import Glibc

/// The kernel's figures for this process, which Prometheus' client libraries export as `process_*`.
struct ProcessFigures: Sendable, Hashable {
    /// The user and system time, in seconds.
    var cpuSeconds: Double
    /// The virtual and the resident memory, in bytes.
    var virtualMemory: UInt64
    var residentMemory: UInt64
    var openDescriptors: Int
    /// The limit; `nil` if there is none.
    var descriptorLimit: UInt64?
    var threads: Int
    /// The start of the process, by the wall clock.
    var startedAt: Date

    /// Returns the current figures; `nil` if the kernel does not report them.
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

    /// The used fields of proc_pid_stat(5).
    struct StatFields: Hashable {
        var userTicks: UInt64
        var systemTicks: UInt64
        var threads: Int
        /// The start of the process, relative to the start of the machine.
        var startTicks: UInt64
        var virtualBytes: UInt64
        var residentPages: UInt64
    }

    /// Parses the fields; `nil` if the text does not have the kernel's form. The second field is the command in parentheses, which may
    /// itself contain blanks and parentheses.
    static func fields(ofStat text: String) -> StatFields? {
        guard let end = text.lastIndex(of: ")") else { return nil }
        let words = text[text.index(after: end)...].split { $0 == " " || $0 == "\n" }
        // The first word is the third field.
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

    /// Returns the number of open descriptors, except the descriptor that the counting needs.
    private static func countDescriptors() -> Int {
        guard let directory = opendir("/proc/self/fd") else { return 0 }
        defer { closedir(directory) }
        var count = 0
        while let entry = readdir(directory) { if entry.pointee.d_name.0 != CChar(UInt8(ascii: ".")) { count += 1 } }
        return max(0, count - 1)
    }
}
