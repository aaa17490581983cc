/// Finds names and constructs that no file of the core may have. The search is textual: it sees names, and not their meaning.
struct CoreRules {
    /// A violation of a rule in a file.
    struct Fault: Hashable, CustomStringConvertible {
        /// From 1.
        let line: Int
        let rule: Rule
        let what: String
        var description: String { "\(self.line): \(self.rule): \(self.what)" }
    }

    enum Rule: Hashable, CaseIterable {
        case imports, clock, randomness, task, lock, inputOrOutput, address, length, walk, reason, storage
    }

    /// swift-collections' modules may join as they are needed. NIOCore is for `ByteBuffer`: what else it has is named below.
    static let modules: Set<String> = [
        "EarshotWire", "DequeModule", "OrderedCollections", "HeapModule", "BitCollections", "HashTreeCollections", "NIOCore",
    ]
    static let longest = 400

    /// Names that stand for facilities that the core must not use.
    private static let names: [Rule: Set<String>] = [
        .clock: [
            "Clock", "ContinuousClock", "SuspendingClock", "Date", "DateInterval", "Calendar", "ProcessInfo", "TimeAmount", "Scheduled",
            "clock_gettime", "clock_gettime_nsec_np", "gettimeofday", "mach_absolute_time", "CFAbsoluteTimeGetCurrent",
        ],
        .randomness: [
            "SystemRandomNumberGenerator", "arc4random", "arc4random_buf", "arc4random_uniform", "getentropy", "getrandom", "drand48",
            "UUID",
            "randomElement", "shuffle", "shuffled",
        ],
        .task: [
            "Task", "TaskGroup", "TaskLocal", "actor", "async", "await", "MainActor", "Continuation", "CheckedContinuation",
            "UnsafeContinuation", "Thread", "OperationQueue",
        ],
        .lock: [
            "Mutex", "NSLock", "NSRecursiveLock", "NSCondition", "Atomic", "ManagedAtomic", "Synchronization", "OSAllocatedUnfairLock",
            "Lock",
        ],
        .inputOrOutput: [
            "FileHandle", "FileManager", "FileDescriptor", "FilePath", "SocketAddress", "URL", "URLSession", "Process", "print",
            "debugPrint",
            "dump", "readLine",
        ],
        // These values differ between processes or objects.
        .address: ["ObjectIdentifier", "hashValue", "Hasher", "Unmanaged", "withUnsafePointer"],
    ]

    /// The same, by how a name begins.
    private static let beginnings: [(String, Rule)] = [
        ("DispatchTime", .clock), ("Dispatch", .task), ("Async", .task), ("withChecked", .task), ("withUnsafeContinuation", .task),
        ("withTask", .task),
        ("withThrowingTask", .task), ("withDiscardingTask", .task), ("pthread", .lock), ("Channel", .inputOrOutput),
        ("EventLoop", .inputOrOutput), ("NIODeadline", .clock), ("NIOLock", .lock), ("NIO", .inputOrOutput),
    ]

    /// Functions of libc, where a method of that name is something else.
    private static let calls: [String: Rule] = [
        "open": .inputOrOutput, "socket": .inputOrOutput, "fopen": .inputOrOutput, "time": .clock, "rand": .randomness,
        "random": .randomness,
    ]

    /// The tables that the module declares for others to look into, by name.
    private let tables: Tables

    /// The rules for these files, all of the module: what one declares, another may walk.
    init(sources: [String]) {
        self.tables = Tables(shared: sources.map(SourceLine.lines(of:)))
    }

    func faults(in source: String) -> [Fault] {
        let lines = SourceLine.lines(of: source)
        var faults: [Fault] = []
        // A file ends with a line's end.
        let count = source.hasSuffix("\n") ? lines.count - 1 : lines.count
        if count > Self.longest { faults.append(Fault(line: count, rule: .length, what: "\(count) lines")) }
        for (index, line) in lines.enumerated() {
            faults += Self.named(in: line).map { Fault(line: index + 1, rule: $0.rule, what: $0.what) }
        }
        return faults + TableWalks(in: lines, self.tables).faults
    }

    private static func named(in line: SourceLine) -> [(rule: Rule, what: String)] {
        let names = line.names
        if let place = names.firstIndex(where: { $0.text == "import" }) {
            let kinds: Set<String> = ["struct", "class", "enum", "protocol", "typealias", "func", "let", "var"]
            let module = names[(place + 1)...].first { !kinds.contains($0.text) }?.text ?? ""
            return Self.modules.contains(module) ? [] : [(.imports, module)]
        }
        return names.enumerated().compactMap { index, name in
            // A type may implement `hash(into:)`: its hash serves tables only, and no table is walked by hash.
            if name.text == "Hasher", line.code.contains("func hash(into hasher: inout Hasher)") { return nil }
            if let rule = Self.names.first(where: { $0.value.contains(name.text) })?.key { return (rule, name.text) }
            if let rule = Self.beginnings.first(where: { name.text.hasPrefix($0.0) })?.1 { return (rule, name.text) }
            if name.text.hasSuffix("Continuation") { return (.task, name.text) }
            // A static call: `UInt64.random(in:)`, `.random()`. With `using:`, the caller supplies the generator.
            if name.text == "random", name.before == ".", name.after == "(", !line.code.contains("using:") {
                return (.randomness, ".random")
            }
            // These calls use the system's generator if the caller supplies none.
            if name.text == "timeOrdered", !line.code.contains("random:") { return (.randomness, name.text) }
            if name.text == "DataToken", line.code[name.range.upperBound...].hasPrefix("()") { return (.randomness, "DataToken()") }
            let isDeclared = index > 0 && ["func", "case", "init"].contains(names[index - 1].text)
            if let rule = Self.calls[name.text], name.after == "(", name.before != ".", !isDeclared { return (rule, name.text) }
            return nil
        }
    }
}
