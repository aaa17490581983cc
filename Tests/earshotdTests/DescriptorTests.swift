import CLinux
import Earshot
import EarshotWire
import Foundation
import Glibc
import NIOCore
import Testing

@testable import EarshotClient
@testable import earshotd

/// Open files that callers pass to the daemon: `Upgrade: earshot-descriptor`.
@Suite(.timeLimit(.minutes(1))) struct DescriptorTests {
    // MARK: A program of this package

    private static func file(_ place: String, _ content: [UInt8]) throws -> String {
        let path = "\(place)/file"
        try Data(content).write(to: URL(fileURLWithPath: path))
        return path
    }

    private static func opened<Value>(_ path: String, _ flags: CInt = O_RDONLY, _ body: (CInt) async throws -> Value) async throws -> Value
    {
        let descriptor = open(path, flags | O_CLOEXEC)
        try #require(descriptor >= 0)
        defer { close(descriptor) }
        return try await body(descriptor)
    }

    @Test func theDaemonSendsAnOpenFileWithoutItsPath() async throws {
        try await APIServer.pair { alice, bob in
            try await alice.agree(with: bob)
            let content = (0..<100_000).map { UInt8(truncatingIfNeeded: $0) }
            let path = try Self.file(alice.place, content)
            try await Self.opened(path) { descriptor in
                // Without a name, only the descriptor leads to the file. Its position does not matter.
                try FileManager.default.removeItem(atPath: path)
                lseek(descriptor, 77, SEEK_SET)
                try await ControlClient.with(socketPath: alice.path) { client in
                    let (rows, teller) = AsyncStream.makeStream(of: ControlAPI.Resource.self)
                    let sent = try await client.sendFile(descriptor, to: .peer("bob"), name: "numbers") { teller.yield($0) }
                    teller.finish()
                    #expect(sent.resources.map(\.state) == [.known(.completed)])
                    var first: ControlAPI.Resource?
                    for await row in rows where first == nil { first = row }
                    #expect(first?.id == sent.resources.first?.id && first?.state == .known(.offered))
                }
                #expect(lseek(descriptor, 0, SEEK_CUR) == 77)
            }
            let row = try #require(await bob.node.resources().first)
            #expect(row.name == "numbers" && row.state == .completed)
            let got = try await bob.node.resourceContent(row.id).read(at: 0, count: content.count)
            #expect(Array(got.readableBytesView) == content)
        }
    }

    /// The content can be read when it has left the spool, and never written. A directory has no descriptor.
    @Test func theDaemonPassesAReceivedFileForReadingOnly() async throws {
        try await APIServer.pair { alice, bob in
            try await alice.agree(with: bob)
            let content = (0..<100_000).map { UInt8(truncatingIfNeeded: $0) }
            let path = try Self.file(alice.place, content)
            try FileManager.default.createDirectory(atPath: "\(alice.place)/photos", withIntermediateDirectories: false)
            try await ControlClient.with(socketPath: alice.path) { client in
                for path in [path, "\(alice.place)/photos"] {
                    let request = ControlAPI.ResourceRequest(to: ["bob"], path: path)
                    // Until the transfer ends.
                    for resource in try await client.sendResource(request).resources {
                        for try await _ in client.progress(of: resource.id) {}
                    }
                }
            }
            let rows = await bob.node.resources()
            let file = try #require(rows.first { $0.kind == .file && $0.state == .completed })
            let directory = try #require(rows.first { $0.kind == .directory && $0.state == .completed })
            try await ControlClient.with(socketPath: bob.path) { client in
                let descriptor = try #require(try await client.openContent(of: file.id))
                defer { close(descriptor) }
                for (row, isCopied) in [(file, true), (directory, false)] {
                    let copy = open("\(bob.place)/copy-\(row.id)", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
                    defer { close(copy) }
                    let count = try await client.content(of: row.id, into: copy)
                    #expect(Int64(count) == Int64(lseek(copy, 0, SEEK_END)) && (count == content.count) == isCopied)
                }
                #expect(fcntl(descriptor, F_GETFL) & O_ACCMODE == O_RDONLY && fcntl(descriptor, F_GETFD) == FD_CLOEXEC)
                let (socket, head) = (bob.path, "HEAD /v1/resources/\(file.id)/content HTTP/1.1\r\nHost: localhost\r\n\(Self.upgrade)\r\n")
                let status = try await Self.onThread { try Self.connection(socket, sending: head).receiveHead().status }
                #expect(status == 200)
                try await client.dropContent(of: file.id)
                var got = [UInt8](repeating: 0, count: content.count + 1)
                #expect(pread(descriptor, &got, got.count, 0) == content.count && Array(got.dropLast()) == content)
                #expect(pwrite(descriptor, &got, 1, 0) == -1 && errno == EBADF)
                #expect(ftruncate(descriptor, 0) == -1)

                #expect(try await client.openContent(of: directory.id) == nil)
                do {
                    _ = try await client.openContent(of: file.id)
                    Issue.record("content that was dropped is passed")
                } catch ControlError.problem(let problem) {
                    #expect(problem.code == .known(.conflict))
                }
            }
        }
    }

    // MARK: Hostile callers

    /// Runs `body` on a thread, where it may wait for a daemon whose tasks need the test's own.
    private static func onThread<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await ControlClient.onThread { _ throws(ControlError) in
            do { return try body() } catch { throw error as? ControlError ?? .cancelled }
        }
    }

    private static let upgrade = "Connection: Upgrade\r\nUpgrade: \(ControlAPI.descriptorProtocol)\r\n"
    private static let head = "POST /v1/resources?to=bob&name=x HTTP/1.1\r\nHost: localhost\r\n\(upgrade)"

    /// Makes a connection on which these bytes are sent.
    private static func connection(_ path: String, sending text: String) throws -> StreamConnection {
        let connection = try StreamConnection(socketPath: path)
        #expect(text.withCString { write(connection.socket.descriptor, $0, strlen($0)) } == text.utf8.count)
        return connection
    }

    /// Asks for the protocol on a connection of its own; `body` goes on after the answer 101.
    private static func asked<Value: Sendable>(
        _ server: APIServer, _ body: @escaping @Sendable (StreamConnection) throws -> Value
    ) async throws -> Value {
        let path = server.path
        return try await Self.onThread {
            let connection = try Self.connection(path, sending: "\(Self.head)\r\n")
            #expect(try connection.receiveHead().status == 101)
            return try body(connection)
        }
    }

    private static func problem(on connection: StreamConnection) throws -> ControlAPI.Problem? {
        try ControlJSON.decode(ControlAPI.DescriptorLine.self, from: try connection.receiveLine()).problem
    }

    /// Files that are not sent, with the flags to open them.
    private static let unfit: [(path: String, flags: CInt)] = [
        ("/tmp", O_RDONLY), ("/dev/null", O_RDONLY), ("/proc/self/mem", O_RDONLY), ("/proc/self/status", O_RDONLY),
        // O_PATH, which Swift's module for the C library does not have.
        ("/etc/passwd", 0o10000000), ("/dev/null", O_WRONLY),
    ]

    @Test(arguments: unfit.indices) func onlyAnOrdinaryFileThatIsOpenForReadingIsTaken(_ index: Int) async throws {
        let (path, flags) = Self.unfit[index]
        try await APIServer.pair { alice, bob in
            try await alice.agree(with: bob)
            try await Self.opened(path, flags) { descriptor in
                let problem = try await Self.asked(alice) { connection in
                    connection.pass(descriptor)
                    return try Self.problem(on: connection)
                }
                #expect(problem?.code == .known(.invalidSource) && problem?.status == 422, "\(path)")
            }
            #expect(await alice.node.resources().isEmpty)
        }
    }

    /// A byte without a descriptor, one with two, or none at all before the connection's end.
    @Test func exactlyOneDescriptorIsTaken() async throws {
        try await APIServer.with { server in
            let (none, two) = try await Self.opened("/etc/passwd") { descriptor in
                let none = try await Self.asked(server) { connection in
                    var byte: UInt8 = 0
                    #expect(write(connection.socket.descriptor, &byte, 1) == 1)
                    return try Self.problem(on: connection)
                }
                let two = try await Self.asked(server) { connection in
                    #expect(Self.pass([descriptor, descriptor], on: connection.socket.descriptor) == 1)
                    return try Self.problem(on: connection)
                }
                return (none, two)
            }
            #expect(none?.code == .known(.invalidParameter) && two?.code == .known(.invalidParameter))
            try await Self.asked(server) { connection in
                shutdown(connection.socket.descriptor, CInt(SHUT_WR))
                // The daemon hangs up, with or without a last word.
                _ = try? connection.receiveLine()
            }
        }
    }

    /// Sends one byte with these descriptors.
    private static func pass(_ descriptors: [CInt], on socket: CInt) -> Int {
        let length = MemoryLayout<cmsghdr>.size + descriptors.count * MemoryLayout<CInt>.size
        let control = UnsafeMutableRawBufferPointer.allocate(byteCount: length, alignment: MemoryLayout<cmsghdr>.alignment)
        defer { control.deallocate() }
        control.storeBytes(of: cmsghdr(), as: cmsghdr.self)
        control.bindMemory(to: cmsghdr.self)[0].cmsg_len = length
        control.bindMemory(to: cmsghdr.self)[0].cmsg_level = SOL_SOCKET
        control.bindMemory(to: cmsghdr.self)[0].cmsg_type = CInt(SCM_RIGHTS)
        for (index, descriptor) in descriptors.enumerated() {
            control.storeBytes(
                of: descriptor, toByteOffset: MemoryLayout<cmsghdr>.size + index * MemoryLayout<CInt>.size, as: CInt.self)
        }
        var byte: UInt8 = 0
        return withUnsafeMutablePointer(to: &byte) { byte in
            var content = iovec(iov_base: byte, iov_len: 1)
            return withUnsafeMutablePointer(to: &content) { content in
                var message = msghdr()
                message.msg_iov = content
                message.msg_iovlen = 1
                message.msg_control = control.baseAddress
                message.msg_controllen = length
                return sendmsg(socket, &message, 0)
            }
        }
    }

    /// The caller has read none of the answers to its earlier requests, which are more than the kernel takes. All of them come first.
    @Test func earlierAnswersComeBeforeTheProtocol() async throws {
        try await APIServer.with { server in
            let path = server.path
            try await Self.onThread {
                let count = 40
                let document = "GET /v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
                let connection = try Self.connection(path, sending: String(repeating: document, count: count) + "\(Self.head)\r\n")
                for _ in 0..<count {
                    let answer = try connection.receiveHead()
                    #expect(answer.status == 200)
                    _ = try connection.receiveAll(of: answer)
                }
                #expect(try connection.receiveHead().status == 101)
            }
        }
    }

    /// A body, which would be taken for the descriptor's byte, is refused before the protocol begins.
    @Test(arguments: ["Content-Length: 1\r\n\r\nx", "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"])
    func aBodyIsRefused(_ rest: String) async throws {
        try await APIServer.with { server in
            let path = server.path
            let status = try await Self.onThread {
                try Self.connection(path, sending: Self.head + rest).receiveHead().status
            }
            #expect(status == 400)
        }
    }

    /// A file becomes shorter while it is sent, over the control connection and over a data connection. The receiver keeps nothing of it.
    @Test(arguments: [EncryptionPreference.none, .required], [1 << 20, 5 << 20])
    func aFileThatIsTruncatedWhileItIsSent(encryption: EncryptionPreference, size: Int) async throws {
        try await APIServer.pair(encryption: encryption) { alice, bob in
            try await alice.agree(with: bob)
            let path = try Self.file(alice.place, [UInt8](repeating: 1, count: size))
            try await Self.opened(path) { descriptor in
                try await ControlClient.with(socketPath: alice.path) { client in
                    // So slow that the change comes in the middle.
                    async let sending = client.sendFile(descriptor, to: .peer("bob"), name: "file", limit: 64 * 1024)
                    while await bob.node.resources().first?.transferred ?? 0 == 0 { try await Task.sleep(for: .milliseconds(5)) }
                    #expect(truncate(path, 1) == 0)
                    do {
                        _ = try await sending
                        Issue.record("a part of the file counts as the whole")
                    } catch ControlError.problem(let problem) {
                        #expect(problem.code == .known(.sourceChanged))
                    }
                }
            }
            while await bob.node.resources().first?.state.isFinal != true { try await Task.sleep(for: .milliseconds(5)) }
            let row = try #require(await bob.node.resources().first)
            #expect(row.state == .cancelled || row.state == .failed, "\(row)")
            await #expect(throws: EarshotError.self) { try await bob.node.resourceContent(row.id) }
        }
    }

    /// Callers that ask and send nothing, more than have places. Each is answered at once or refused, and those that were answered are
    /// told in the end. Ordinary calls are answered meanwhile.
    @Test func silentCallersTakeTheirPlacesOnly() async throws {
        try await APIServer.with { server in
            let path = server.path
            async let silent: Void = Self.onThread {
                let silent = try (0..<MovedConnections.limit + 20).map { _ in try Self.connection(path, sending: "\(Self.head)\r\n") }
                for connection in silent {
                    let answer = try connection.receiveHead()
                    guard answer.status != 503 else { continue }
                    #expect(answer.status == 101)
                    #expect(try Self.problem(on: connection)?.code == .known(.invalidParameter))
                }
            }
            try await ControlClient.with(socketPath: path) { client in _ = try await client.status() }
            try await silent
        }
    }
}
