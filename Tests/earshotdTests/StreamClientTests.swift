import EarshotClient
import EarshotWire
import Foundation
import Testing

@testable import Earshot
@testable import earshotd

/// Large streams as the command line moves them: from a descriptor to a descriptor, through two daemons.
@Suite(.serialized, .timeLimit(.minutes(2))) struct StreamClientTests {
    private static let content = {
        // Made by doubling, and of a length that fits no block.
        var data = Data((0..<9_001).map { UInt8(truncatingIfNeeded: $0 &* 2_654_435_761 >> 13) })
        while data.count < 9 << 20 { data += data }
        return data
    }()

    private func descriptor(_ path: String, _ flags: CInt) throws -> FileHandle {
        let descriptor = Glibc.open(path, flags | O_CLOEXEC, 0o600)
        try #require(descriptor >= 0)
        return FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }

    /// Also into a file that is appended to, into which the kernel moves nothing.
    @Test(arguments: [false, true])
    func fromFileToFile(appended: Bool) async throws {
        try await APIServer.pair(encryption: .none) { alice, bob in
            try await alice.agree(with: bob)
            try Self.content.write(to: URL(fileURLWithPath: "\(alice.place)/in"))
            let input = try self.descriptor("\(alice.place)/in", O_RDONLY)
            let output = try self.descriptor("\(bob.place)/out", O_WRONLY | O_CREAT | (appended ? O_APPEND : 0))
            async let row = ControlClient.with(socketPath: alice.path) {
                try await $0.openStream(to: "bob", name: "x", from: input.fileDescriptor).value
            }
            try await ControlClient.with(socketPath: bob.path) {
                try await $0.nextStream(name: "x").move(to: output.fileDescriptor)
            }
            let sent = try await row
            #expect(sent.error == nil && sent.transferred == UInt64(Self.content.count))
            #expect(try Data(contentsOf: URL(fileURLWithPath: "\(bob.place)/out")) == Self.content)
        }
    }

    /// If the output descriptor cannot take more bytes, the error says so.
    @Test func aDescriptorThatTakesNothing() async throws {
        try await APIServer.pair(encryption: .none) { alice, bob in
            try await alice.agree(with: bob)
            try Self.content.write(to: URL(fileURLWithPath: "\(alice.place)/in"))
            let input = try self.descriptor("\(alice.place)/in", O_RDONLY)
            let full = try self.descriptor("/dev/full", O_WRONLY)
            let sent = Task {
                try await ControlClient.with(socketPath: alice.path) {
                    _ = try await $0.openStream(to: "bob", name: "x", from: input.fileDescriptor)
                }
            }
            let error = await #expect(throws: ControlError.self) {
                try await ControlClient.with(socketPath: bob.path) {
                    try await $0.nextStream(name: "x").move(to: full.fileDescriptor)
                }
            }
            #expect(error == .output(reason: "no space left on device", code: ENOSPC))
            await #expect(throws: ControlError.self) { try await sent.value }
        }
    }

    /// The stream's data connection is lost meanwhile: the rest arrives over another connection, and no byte arrives twice.
    @Test func itsDataConnectionIsLost() async throws {
        try await APIServer.pair(encryption: .none) { alice, bob in
            try await alice.agree(with: bob)
            try Self.content.write(to: URL(fileURLWithPath: "\(alice.place)/in"))
            let input = try self.descriptor("\(alice.place)/in", O_RDONLY)
            let pipe = Pipe()
            async let row = ControlClient.with(socketPath: alice.path) {
                try await $0.openStream(to: "bob", name: "x", from: input.fileDescriptor).value
            }
            let (output, result) = (pipe.fileHandleForWriting, pipe.fileHandleForReading)
            async let moved: Void = ControlClient.with(socketPath: bob.path) {
                defer { try? output.close() }
                return try await $0.nextStream(name: "x").move(to: output.fileDescriptor)
            }
            // More than what fits between the two ends while nothing is taken here.
            var whole = try await self.read(result, 4 << 20)
            let id = try #require(await bob.node.openStreams().first?.id)
            // The stream waits for the reader meanwhile.
            while await bob.node.dataConnections[TransferID(id)] == nil { try await Task.sleep(for: .milliseconds(5)) }
            await bob.node.dataConnections[TransferID(id)]?.close()
            whole += try await self.read(result, Self.content.count)
            #expect(whole == Self.content)
            try await moved
            #expect(try await row.error == nil)
        }
    }

    /// An aborted stream ends both commands, although one waits for its reader and the other for its writer; so does one of which a command's
    /// task is cancelled.
    @Test(arguments: ["sender", "receiver", "sending task", "receiving task"])
    func anAbortedStreamEndsBothCommands(by who: String) async throws {
        try await APIServer.pair(encryption: .none) { alice, bob in
            try await alice.agree(with: bob)
            try Self.content.write(to: URL(fileURLWithPath: "\(alice.place)/in"))
            let source = try self.descriptor("\(alice.place)/in", O_RDONLY)
            let output = Pipe()
            let sink = output.fileHandleForWriting
            let sent = Task {
                try await ControlClient.with(socketPath: alice.path) {
                    _ = try await $0.openStream(to: "bob", name: "x", from: source.fileDescriptor)
                }
            }
            let taken = Task {
                try await ControlClient.with(socketPath: bob.path) {
                    _ = try await $0.nextStream(name: "x").move(to: sink.fileDescriptor)
                }
            }
            let server = who == "sender" ? alice : bob
            let cancelled = ["sending task": sent, "receiving task": taken][who]
            while await bob.node.openStreams().first?.transferred ?? 0 < 1 << 20 { try await Task.sleep(for: .milliseconds(5)) }
            let id = try #require(await server.node.openStreams().first?.id)
            if let cancelled { cancelled.cancel() } else { _ = try await server.node.removeStream(id) }
            // Its thread is in a write that only a reader ends.
            async let rest = self.read(output.fileHandleForReading, Self.content.count)
            await #expect(throws: ControlError.self) { try await sent.value }
            await #expect(throws: ControlError.self) { try await taken.value }
            if let cancelled { await #expect(throws: ControlError.cancelled) { try await cancelled.value } }
            try sink.close()
            #expect(try await rest.count < Self.content.count)
        }
    }

    private func read(_ file: FileHandle, _ count: Int) async throws -> Data {
        // A thread that may wait as long as it likes.
        try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async {
                var data = Data()
                do {
                    while data.count < count, let more = try file.read(upToCount: count - data.count), !more.isEmpty { data += more }
                    continuation.resume(returning: data)
                } catch {
                    continuation.resume(throwing: error)
                }
            }
        }
    }
}
