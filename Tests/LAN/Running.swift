import Foundation
import Synchronization

/// What a command did.
struct Outcome: Sendable, CustomStringConvertible {
    /// The exit code, or 128 and the signal that ended it.
    let status: Int32
    /// Its standard output.
    let output: String
    /// Its standard error.
    let errors: String

    var description: String { "exit \(self.status)\n\(self.output)\(self.errors)" }
}

/// A process on its way. Its output goes to files, so that it never waits for a reader.
final class Running: Sendable {
    private struct State {
        var status: Int32?
        var waiting: [CheckedContinuation<Int32, Never>] = []
    }

    private let process: Process
    private let output: String
    private let errors: String
    private let state = Mutex(State())

    /// Starts a program; `log` takes both outputs where it is given, and outlives the test.
    init(_ command: [String], environment: [String: String] = [:], directory: String? = nil, log: String? = nil) throws {
        guard let program = command.first else { throw Late(description: "no command") }
        let base = try log ?? "\(Laboratory.room())/tmp/\(UUID().uuidString)"
        self.output = log ?? "\(base).out"
        self.errors = log ?? "\(base).err"
        self.process = Process()
        self.process.executableURL = URL(fileURLWithPath: program)
        self.process.arguments = Array(command.dropFirst())
        self.process.environment = ProcessInfo.processInfo.environment.merging(environment) { _, new in new }
        if let directory { self.process.currentDirectoryURL = URL(fileURLWithPath: directory) }
        self.process.standardInput = FileHandle.nullDevice
        let output = try Self.appending(self.output)
        self.process.standardOutput = output
        self.process.standardError = log == nil ? try Self.appending(self.errors) : output
        self.process.terminationHandler = { [weak self] process in
            self?.ended(process.terminationReason == .exit ? process.terminationStatus : 128 + process.terminationStatus)
        }
        try self.process.run()
    }

    /// The process id.
    var pid: Int32 { self.process.processIdentifier }

    /// Whether it still runs.
    var isRunning: Bool { self.state.withLock { $0.status == nil } }

    /// What it has written to standard output so far.
    func outputSoFar() -> String { Self.text(self.output) }

    /// Sends a signal, where it still runs.
    func signal(_ number: Int32) {
        if self.isRunning { kill(self.pid, number) }
    }

    /// Waits for its end.
    func status() async -> Int32 {
        await withCheckedContinuation { continuation in
            let known = self.state.withLock { state -> Int32? in
                if state.status == nil { state.waiting.append(continuation) }
                return state.status
            }
            if let known { continuation.resume(returning: known) }
        }
    }

    /// Waits for its end, and tells what it did.
    func outcome() async -> Outcome {
        let status = await self.status()
        defer { for path in Set([self.output, self.errors]) { try? FileManager.default.removeItem(atPath: path) } }
        return Outcome(status: status, output: Self.text(self.output), errors: Self.text(self.errors))
    }

    private func ended(_ status: Int32) {
        let waiting = self.state.withLock { state in
            state.status = status
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume(returning: status) }
    }

    private static func appending(_ path: String) throws -> FileHandle {
        if !FileManager.default.fileExists(atPath: path) { _ = FileManager.default.createFile(atPath: path, contents: nil) }
        let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
        try handle.seekToEnd()
        return handle
    }

    private static func text(_ path: String) -> String {
        String(decoding: FileManager.default.contents(atPath: path) ?? Data(), as: UTF8.self)
    }
}
