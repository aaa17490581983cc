import EarshotSafety
import EarshotWire
import Foundation
import NIOCore
import Testing

@testable import Earshot

/// A source that blocks for a long time or forever delays no other.
@Suite(.timeLimit(.minutes(1))) struct SourceOpeningTests {
    /// A server that answers only when the test allows it.
    private final class Server: Sendable {
        private struct Waiting: Sendable {
            var now = 0
            var most = 0
            var all = 0
        }

        private let gate = DispatchSemaphore(value: 0)
        private let waiting = Box(Waiting())

        /// The number of waiting requests.
        var now: Int { self.waiting.value.now }
        /// The maximum number of requests that waited at once.
        var most: Int { self.waiting.value.most }

        /// The number of all requests.
        var all: Int { self.waiting.value.all }

        func wait() {
            self.waiting.withLock { waiting in
                waiting.now += 1
                waiting.all += 1
                waiting.most = max(waiting.most, waiting.now)
            }
            self.gate.wait()
            self.waiting.withLock { $0.now -= 1 }
        }

        func answer(_ count: Int) {
            for _ in 0..<count { self.gate.signal() }
        }
    }

    /// Creates an opener that fails, and that asks the server for paths beginning with `silent`.
    private func opening(_ server: Server) -> SourceOpening {
        SourceOpening { (place: SourceOpening.Place) throws(EarshotError) -> SourceOpening.Opened in
            guard case .path(let path) = place else {
                server.wait()
                throw EarshotError(.invalidSource, "no file")
            }
            if path.hasPrefix("silent") { server.wait() }
            throw EarshotError(.invalidSource, "no \(path)")
        }
    }

    private static func message(_ opening: SourceOpening, _ path: String) async -> String {
        do {
            return try await opening.open(.path(path)).name
        } catch {
            return error.message
        }
    }

    @Test func whatAPathLeadsTo() async throws {
        let directory = try StateDirectory()
        try Data("abc".utf8).write(to: URL(fileURLWithPath: "\(directory.path)/file"))
        let file = try await SourceOpening.open(.path("\(directory.path)/file"))
        #expect(file.kind == .file && file.name == "file" && file.source.size == 3)
        try FileManager.default.createDirectory(atPath: "\(directory.path)/tree", withIntermediateDirectories: false)
        let tree = try await SourceOpening.open(.path("\(directory.path)/tree"))
        #expect(tree.kind == .directory && tree.name == "tree")
        for path in ["\(directory.path)/missing", "/dev/null", "/a\0b/c"] {
            let error = await #expect(throws: EarshotError.self) { _ = try await SourceOpening.open(.path(path)) }
            #expect(error?.code == .invalidSource, "\(path)")
        }
    }

    /// However often the path is requested.
    @Test func openingsOfOnePathAboveTheLimitWait() async throws {
        let server = Server()
        let opening = self.opening(server)
        let count = 2 * SourceOpening.limit
        let asked = (0..<count).map { _ in Task { await Self.message(opening, "silent") } }
        try await eventually("as many of one path as may be are being opened") { server.now == SourceOpening.pathLimit }
        #expect(await Self.message(opening, "other") == "no other")
        #expect(server.now == SourceOpening.pathLimit)
        server.answer(count)
        for task in asked { #expect(await task.value == "no silent") }
        #expect(server.most == SourceOpening.pathLimit)
    }

    @Test func openingsAboveTheLimitWait() async throws {
        let server = Server()
        let opening = self.opening(server)
        let paths = (0..<2 * SourceOpening.limit).map { "silent \($0)" }
        let asked = paths.map { path in Task { await Self.message(opening, path) } }
        try await eventually("as many as may be are being opened") { server.now == SourceOpening.limit }
        server.answer(paths.count)
        for (path, task) in zip(paths, asked) { #expect(await task.value == "no \(path)") }
        #expect(server.most == SourceOpening.limit)
        // All of them have ended.
        #expect(await Self.message(opening, "other") == "no other")
    }

    /// Callers pass files of a server that does not answer, for example of FUSE. Paths are opened meanwhile.
    @Test func openFilesThatHangLeaveRoomForPaths() async throws {
        let server = Server()
        let opening = self.opening(server)
        let asked = (0..<2 * SourceOpening.limit).map { _ in
            let file = HeldFile(OpenFile(descriptor: open("/dev/null", O_RDONLY | O_CLOEXEC), subject: "file"), name: "file")
            return Task { await #expect(throws: EarshotError.self) { _ = try await opening.open(.file(file)) } }
        }
        try await eventually("as many as may be are being examined") { server.now == SourceOpening.heldLimit }
        #expect(await Self.message(opening, "other") == "no other")
        #expect(server.now == SourceOpening.heldLimit)
        server.answer(asked.count)
        for task in asked { _ = await task.value }
        #expect(server.most == SourceOpening.heldLimit)
    }

    /// A caller that leaves waits neither for a thread that hangs nor for its turn, and its request is not carried out later.
    @Test func aCallerThatLeavesDoesNotWait() async throws {
        let server = Server()
        let opening = self.opening(server)
        let asked = (0..<SourceOpening.pathLimit + 1).map { _ in Task { await Self.message(opening, "silent") } }
        try await eventually("as many of one path as may be are being opened") { server.now == SourceOpening.pathLimit }
        for task in asked { task.cancel() }
        for task in asked { #expect(await task.value == "its caller has left") }
        server.answer(SourceOpening.pathLimit)
        try await eventually("the threads have ended") { server.now == 0 }
        #expect(server.all == SourceOpening.pathLimit)
        #expect(await Self.message(opening, "other") == "no other")
    }

    /// A source on a server that does not answer.
    private struct SilentSource: ResourceSource {
        let size: UInt64 = 1
        let stamp = "silent"
        let server: Server

        func read(into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) -> Int {
            self.server.wait()
            buffer.initializeMemory(as: UInt8.self, repeating: 7)
            return buffer.count
        }

        func extent(at offset: UInt64, count: UInt64) -> FileExtent? { nil }

        func verify() {}
    }

    @Test func aSmallSourceThatHangsHoldsUpNoOther() async throws {
        let server = Server()
        let silent = try SourceContent(SilentSource(server: server))
        let reading = Task { try await silent.read(at: 0, count: 1) }
        try await eventually("it is being read") { server.now == 1 }
        let directory = try StateDirectory()
        try Data("0123456789".utf8).write(to: URL(fileURLWithPath: "\(directory.path)/file"))
        let other = try SourceContent(SourceFile(path: "\(directory.path)/file"))
        #expect(try await other.read(at: 0, count: 10) == ByteBuffer(string: "0123456789"))
        server.answer(1)
        #expect(try await reading.value == ByteBuffer(bytes: [7]))
    }
}
