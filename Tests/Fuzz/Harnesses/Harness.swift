import Glibc

/// One thing that is fuzzed: it takes any bytes, and traps where the code under test breaks a promise.
///
/// libFuzzer makes bytes up, led by which branches they reach; `Tests/Fuzz/run` chooses the harness by the variable `EARSHOT_FUZZ`.
protocol Harness {
    static func run(_ input: [UInt8])
}

enum Harnesses {
    private static let all: [String: @Sendable ([UInt8]) -> Void] = [
        "frames": FrameHarness.run, "handshake": HandshakeHarness.run, "connection": ConnectionHarness.run, "txt": TXTHarness.run,
        "settings": SettingsHarness.run, "names": NameHarness.run, "tree": TreeHarness.run, "data": DataHarness.run,
        "messages": MessageHarness.run, "archives": ArchiveHarness.run, "peers": PeerHarness.run,
    ]

    /// The one that the environment names.
    static let chosen: @Sendable ([UInt8]) -> Void = {
        let name = getenv("EARSHOT_FUZZ").map { String(cString: $0) } ?? ""
        if let harness = all[name] { return harness }
        say("EARSHOT_FUZZ must be one of \(all.keys.sorted().joined(separator: ", "))")
        exit(64)
    }()
}

/// Writes a line to standard error.
private func say(_ line: String) {
    let bytes = Array("\(line)\n".utf8)
    _ = write(STDERR_FILENO, bytes, bytes.count)
}

/// Holds in every build, unlike `assert`: this is how a harness finds something.
func demand(_ condition: @autoclosure () -> Bool, _ promise: @autoclosure () -> String) {
    guard !condition() else { return }
    say("broken: \(promise())")
    abort()
}

/// libFuzzer's entry point.
@_cdecl("LLVMFuzzerTestOneInput") public func fuzzOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    Harnesses.chosen(Array(UnsafeBufferPointer(start: start, count: count)))
    return 0
}
