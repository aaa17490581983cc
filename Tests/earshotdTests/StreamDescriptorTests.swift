import EarshotSafety
import EarshotWire
import Foundation
import Glibc
import NIOCore
import Testing

@testable import Earshot
@testable import EarshotClient
@testable import earshotd

/// Streams between descriptors that callers pass to two daemons.
@Suite(.timeLimit(.minutes(2))) struct StreamDescriptorTests {
    private static let content = {
        var data = Data((0..<9_001).map { UInt8(truncatingIfNeeded: $0 &* 2_654_435_761 >> 13) })
        while data.count < 9 << 20 { data += data }
        return data
    }()

    private static func open(_ path: String, _ flags: CInt) throws -> FileHandle {
        let descriptor = Glibc.open(path, flags | O_CLOEXEC, 0o600)
        try #require(descriptor >= 0, "\(path)")
        return FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }

    private static func openStream(_ server: APIServer, from input: CInt) async throws -> ControlAPI.Stream {
        try await ControlClient.with(socketPath: server.path) { try await $0.openStream(to: "bob", name: "x", from: input).value }
    }

    /// - Returns: whether the daemon moved the stream.
    private static func accept(_ server: APIServer, into output: CInt) async throws -> Bool {
        try await ControlClient.with(socketPath: server.path) { try await $0.nextStream(name: "x", into: output) == nil }
    }

    /// Runs a blocking call on a thread.
    private static func onThread<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await ControlClient.onThread { _ throws(ControlError) in
            do { return try body() } catch { throw error as? ControlError ?? .cancelled }
        }
    }

    private static func read(_ file: FileHandle, _ limit: Int = .max) async throws -> Data {
        try await Self.onThread {
            var data = Data()
            while data.count < limit, let more = try file.read(upToCount: min(limit - data.count, 1 << 20)), !more.isEmpty { data += more }
            return data
        }
    }

    private static func eventually(_ condition: () async throws -> Bool) async throws {
        while try await !condition() { try await Task.sleep(for: .milliseconds(5)) }
    }

    // MARK: Bytes

    /// Files, from their positions on and also one that is appended to; and the shared position moves with the bytes.
    @Test(arguments: [EncryptionPreference.none, .required], [false, true])
    func fromFileToFile(encryption: EncryptionPreference, isAppended: Bool) async throws {
        try await APIServer.pair(encryption: encryption) { alice, bob in
            try await alice.agree(with: bob)
            try Self.content.write(to: URL(fileURLWithPath: "\(alice.place)/in"))
            try Data("before".utf8).write(to: URL(fileURLWithPath: "\(bob.place)/out"))
            let input = try Self.open("\(alice.place)/in", O_RDONLY)
            let output = try Self.open("\(bob.place)/out", isAppended ? O_WRONLY | O_APPEND : O_WRONLY)
            try input.seek(toOffset: 5)
            if !isAppended { try output.seek(toOffset: 6) }
            async let sent = Self.openStream(alice, from: input.fileDescriptor)
            #expect(try await Self.accept(bob, into: output.fileDescriptor))
            let row = try await sent
            #expect(row.error == nil && row.state == .known(.closed) && row.transferred == UInt64(Self.content.count - 5))
            let whole = try Data(contentsOf: URL(fileURLWithPath: "\(bob.place)/out"))
            #expect(whole == Data("before".utf8) + Self.content.dropFirst(5))
            let positions = [try input.offset(), try output.offset()]
            #expect(positions == [UInt64(Self.content.count), UInt64(Self.content.count + 1)])
        }
    }

    /// Pipes whose other ends are slow by turns. Neither their flags nor their capacities change.
    @Test(arguments: [EncryptionPreference.none, .required]) func fromPipeToPipe(encryption: EncryptionPreference) async throws {
        try await APIServer.pair(encryption: encryption) { alice, bob in
            try await alice.agree(with: bob)
            let (source, sink) = (Pipe(), Pipe())
            let ends = [source.fileHandleForReading, sink.fileHandleForWriting].map(\.fileDescriptor)
            let state = { ends.map { [fcntl($0, F_GETFL), fcntl($0, 1032)] } }
            let before = state()
            async let sent = Self.openStream(alice, from: source.fileHandleForReading.fileDescriptor)
            async let isMoved = Self.accept(bob, into: sink.fileHandleForWriting.fileDescriptor)
            let writer = source.fileHandleForWriting
            try writer.write(contentsOf: Data([1]))
            #expect(try await Self.read(sink.fileHandleForReading, 1) == Data([1]))
            let written = Task {
                try await Self.onThread {
                    try writer.write(contentsOf: Self.content)
                    try writer.close()
                }
            }
            // The reader rests, and with it everything behind it.
            let total = UInt64(Self.content.count) + 1
            var last: UInt64 = 0
            try await Self.eventually {
                defer { usleep(100_000) }
                let now = await alice.node.openStreams().first?.transferred ?? 0
                defer { last = now }
                return now == last && now > 1
            }
            #expect(last < total)
            #expect(try await Self.read(sink.fileHandleForReading, Self.content.count) == Self.content)
            try await written.value
            let (hasMoved, row) = (try await isMoved, try await sent)
            #expect(hasMoved && row.transferred == total)
            #expect(state() == before)
        }
    }

    // MARK: Ends

    /// The reader of the receiver's pipe goes: the daemon's writing fails, and the sender does not take the stream for complete.
    @Test(arguments: [EncryptionPreference.none, .required]) func theReaderGoes(encryption: EncryptionPreference) async throws {
        try await APIServer.pair(encryption: encryption) { alice, bob in
            try await alice.agree(with: bob)
            try Self.content.write(to: URL(fileURLWithPath: "\(alice.place)/in"))
            let input = try Self.open("\(alice.place)/in", O_RDONLY)
            let sink = Pipe()
            let sent = Task { try await Self.openStream(alice, from: input.fileDescriptor) }
            let moved = Task { try await Self.accept(bob, into: sink.fileHandleForWriting.fileDescriptor) }
            _ = try await Self.read(sink.fileHandleForReading, 1 << 20)
            try sink.fileHandleForReading.close()
            await #expect(throws: ControlError.output(reason: "broken pipe", code: EPIPE)) { try await moved.value }
            await #expect(throws: ControlError.self) { try await sent.value }
        }
    }

    /// A caller goes while its daemon waits for an idle pipe. The daemon then closes the pipe, and the call of the other side ends.
    @Test(arguments: ["sender", "receiver"], [EncryptionPreference.none, .required])
    func aCallerGoes(who: String, encryption: EncryptionPreference) async throws {
        try await APIServer.pair(encryption: encryption) { alice, bob in
            try await alice.agree(with: bob)
            let (source, sink) = (Pipe(), Pipe())
            let sent = Task {
                // The daemon's copy is the last one afterwards.
                defer { try? source.fileHandleForReading.close() }
                return try await Self.openStream(alice, from: source.fileHandleForReading.fileDescriptor)
            }
            let moved = Task {
                defer { try? sink.fileHandleForWriting.close() }
                return try await Self.accept(bob, into: sink.fileHandleForWriting.fileDescriptor)
            }
            // Large enough for a data connection, and more than the sink takes.
            let writer = source.fileHandleForWriting
            let written = Task { try await Self.onThread { try writer.write(contentsOf: Self.content) } }
            if who == "sender" {
                _ = try await Self.read(sink.fileHandleForReading, Self.content.count)
                try await written.value
                sent.cancel()
            } else {
                _ = try await Self.read(sink.fileHandleForReading, 1 << 20)
                moved.cancel()
            }
            await #expect(throws: ControlError.self) { try await sent.value }
            await #expect(throws: ControlError.self) { try await moved.value }
            // Both pipes have lost their ends in the daemons.
            if who == "receiver" { await #expect(throws: (any Error).self) { try await written.value } }
            await #expect(throws: (any Error).self) {
                try await Self.eventually {
                    try writer.write(contentsOf: Data([1]))
                    return false
                }
            }
            #expect(try await Self.read(sink.fileHandleForReading).count <= Self.content.count)
        }
    }

    /// The daemon's error in writing is that of a local write.
    @Test func theOutputTakesNothing() async throws {
        try await APIServer.pair { alice, bob in
            try await alice.agree(with: bob)
            // An ordinary file that takes numbers only.
            let output = try Self.open("/proc/self/oom_score_adj", O_WRONLY)
            let input = try Self.open("/etc/passwd", O_RDONLY)
            let sent = Task { try await Self.openStream(alice, from: input.fileDescriptor) }
            let error = await #expect(throws: ControlError.self) { try await Self.accept(bob, into: output.fileDescriptor) }
            guard case .output(let reason, EIO)? = error else { throw try #require(error) }
            #expect(reason.contains("invalid argument"), "\(reason)")
            await #expect(throws: ControlError.self) { try await sent.value }
        }
    }

    // MARK: Callers that pass something else

    private static let upgrade = "Host: localhost\r\nConnection: Upgrade\r\nUpgrade: \(ControlAPI.descriptorProtocol)\r\n\r\n"
    private static let open = "POST /v1/streams/descriptor?to=bob&name=x HTTP/1.1\r\n\(upgrade)"
    private static let accept = "GET /v1/streams/next/content HTTP/1.1\r\n\(upgrade)"

    /// The path that a caller opens and passes, and the flags with which it is opened.
    private static let unfit: [(request: String, path: String, flags: CInt)] = [
        (open, "/tmp", O_RDONLY), (open, "/dev/zero", O_RDONLY), (open, "/dev/ptmx", O_RDWR), (open, "/dev/null", O_WRONLY),
        // O_PATH, which Swift's module for the C library does not have.
        (open, "/etc/passwd", 0o10000000), (accept, "/etc/passwd", 0o10000000), (accept, "/etc/passwd", O_RDONLY),
        (accept, "/dev/full", O_WRONLY), (accept, "/dev/ptmx", O_RDWR),
    ]

    @Test(arguments: unfit.indices) func onlyPipesAndFilesAreTaken(_ index: Int) async throws {
        let (request, path, flags) = Self.unfit[index]
        try await APIServer.pair { alice, bob in
            try await alice.agree(with: bob)
            let file = try Self.open(path, flags)
            let server = request == Self.open ? alice : bob
            let socket = server.path
            let line = try await Self.onThread {
                let connection = try StreamConnection(socketPath: socket)
                #expect(write(connection.socket.descriptor, request, request.utf8.count) == request.utf8.count)
                #expect(try connection.receiveHead().status == 101)
                connection.pass(file.fileDescriptor)
                return try ControlJSON.decode(ControlAPI.DescriptorLine.self, from: try connection.receiveLine())
            }
            #expect(line.problem?.code == .known(.invalidSource) && line.problem?.status == 422, "\(path): \(line)")
            #expect(await server.node.openStreams().allSatisfy { $0.state == .closed })
        }
    }

    /// A byte without a descriptor, as a relay passes it.
    @Test(arguments: [open, accept]) func aByteWithoutADescriptorIsRefused(_ request: String) async throws {
        try await APIServer.with { server in
            let socket = server.path
            let line = try await Self.onThread {
                let connection = try StreamConnection(socketPath: socket)
                #expect(write(connection.socket.descriptor, request, request.utf8.count) == request.utf8.count)
                #expect(try connection.receiveHead().status == 101)
                #expect(write(connection.socket.descriptor, "\0", 1) == 1)
                return try ControlJSON.decode(ControlAPI.DescriptorLine.self, from: try connection.receiveLine())
            }
            #expect(line.problem?.code == .known(.invalidParameter))
            #expect(await server.node.openStreams().isEmpty)
        }
    }

    /// Without the field, no descriptor follows; with a body, no descriptor can follow.
    @Test(arguments: [("Host: localhost\r\n\r\n", 426), ("Content-Length: 1\r\n\(upgrade)x", 400)] as [(String, Int)])
    func aRequestWithoutTheProtocolIsRefused(_ rest: String, _ status: Int) async throws {
        try await APIServer.with { server in
            let (socket, request) = (server.path, "POST /v1/streams/descriptor?to=bob&name=x HTTP/1.1\r\n\(rest)")
            let answer = try await Self.onThread {
                let connection = try StreamConnection(socketPath: socket)
                #expect(write(connection.socket.descriptor, request, request.utf8.count) == request.utf8.count)
                return try connection.receiveHead()
            }
            #expect(answer.status == status)
            #expect(status != 426 || answer.fields["upgrade"] == ControlAPI.descriptorProtocol)
        }
    }

    // MARK: Bytes instead

    /// A terminal or another device is never passed: the client moves the bytes.
    @Test func aSocketGoesByBytes() async throws {
        try await APIServer.pair { alice, bob in
            try await alice.agree(with: bob)
            var ends: [CInt] = [-1, -1]
            try #require(socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0, &ends) == 0)
            let sockets = ends.map { FileHandle(fileDescriptor: $0, closeOnDealloc: true) }
            let input = try Self.open("/etc/passwd", O_RDONLY)
            async let sent = Self.openStream(alice, from: input.fileDescriptor)
            let output = sockets[0]
            try await ControlClient.with(socketPath: bob.path) {
                let stream = try #require(try await $0.nextStream(name: "x", into: output.fileDescriptor))
                try await stream.move(to: output.fileDescriptor)
            }
            let count = Int(try await sent.transferred)
            let whole = try Data(contentsOf: URL(fileURLWithPath: "/etc/passwd"))
            #expect(try await Self.read(sockets[1], count) == whole)
        }
    }
}
