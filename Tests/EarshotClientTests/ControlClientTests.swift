import Foundation
import Glibc
import NIOCore
import Synchronization
import Testing

@testable import EarshotClient

/// The client's errors for an empty name, and for a server that is not the daemon.
@Suite struct ControlClientTests {
    private func failure(
        _ socket: String, patience: Duration = ControlClient.patience, _ call: @Sendable (ControlClient) async throws -> Void
    ) async throws -> ControlError? {
        try await ControlClient.with(socketPath: socket, patience: patience) { client in
            do {
                try await call(client)
                return nil
            } catch {
                return error as? ControlError
            }
        }
    }

    /// An empty name would give the path of another call, so the daemon is not asked.
    @Test func anEmptyNameIsNoPeers() async throws {
        let calls: [@Sendable (ControlClient) async throws -> Void] = [
            { _ = try await $0.peer("") }, { _ = try await $0.setTrust(.trusted, of: "") }, { _ = try await $0.setAlias("x", of: "") },
            { _ = try await $0.verify("") },
            { _ = try await $0.endVerification(of: "", mismatch: true) }, { _ = try await $0.group("") },
            { try await $0.leaveGroup("") }, { _ = try await $0.invite(["bob"], to: "") },
        ]
        for call in calls {
            guard case .problem(let problem)? = try await self.failure("/nowhere", call) else {
                Issue.record("it was asked for")
                continue
            }
            #expect(problem.code == "invalid-parameter")
        }
    }

    /// Calls `body` with a listening socket and its path.
    private func withListener(_ body: (_ listener: CInt, _ path: String) async throws -> Void) async throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("c-\(UInt32.random(in: 0 ... .max))").path
        let listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        defer {
            close(listener)
            unlink(path)
        }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix($0.count - 1)) }
        let bound = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(listener, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) }
        }
        try #require(bound == 0 && listen(listener, 1) == 0)
        try await body(listener, path)
    }

    /// A hanging server: the kernel accepts connections for it.
    @Test func whatDoesNotAnswerIsGivenUp() async throws {
        try await self.withListener { _, path in
            let failure = try await self.failure(path, patience: .milliseconds(50)) { _ = try await $0.status() }
            #expect(failure == .silent(path: path))
        }
    }

    @Test func whatSpeaksNoHTTPIsNoDaemon() async throws {
        try await self.withListener { listener, path in
            Thread.detachNewThread {
                let client = accept(listener, nil, nil)
                var bytes = [UInt8](repeating: 0, count: 4096)
                _ = recv(client, &bytes, bytes.count, 0)
                let banner = Array("SSH-2.0-OpenSSH_9.2p1\r\n".utf8)
                _ = send(client, banner, banner.count, Int32(MSG_NOSIGNAL))
                close(client)
            }
            let failure = try await self.failure(path) { _ = try await $0.status() }
            #expect(failure == .malformed("what listens at \(path) speaks no HTTP"))
        }
    }

    /// A daemon that refuses an upload answers before it has read the whole body. The caller receives this answer, whether the rest of the
    /// body is still pending or can no longer be written.
    @Test(arguments: [1, 256, 1024, 4096], [false, true])
    func aRefusalOfAnUploadIsHeard(_ kibibytes: Int, _ closes: Bool) async throws {
        for _ in 0..<8 {
            try await self.withListener { listener, path in
                let isGiven = DispatchSemaphore(value: 0)
                let isOver = DispatchSemaphore(value: 0)
                Thread.detachNewThread {
                    let client = accept(listener, nil, nil)
                    var bytes = [UInt8](repeating: 0, count: 4096)
                    _ = recv(client, &bytes, bytes.count, 0)
                    isGiven.wait()
                    let body = #"{"title":"Too Large","status":413,"detail":"it is too large","code":"too-large"}"#
                    let head = "HTTP/1.1 413 Payload Too Large\r\nContent-Type: application/problem+json\r\nConnection: close\r\n"
                    let answer = Array("\(head)Content-Length: \(body.utf8.count)\r\n\r\n\(body)".utf8)
                    _ = send(client, answer, answer.count, Int32(MSG_NOSIGNAL))
                    if !closes { isOver.wait() }
                    close(client)
                }
                let isRead = Atomic(false)
                let content = AsyncStreamOfBytes {
                    // The content is a single piece. After it, the library ends the request, although the daemon reads nothing.
                    guard !isRead.exchange(true, ordering: .relaxed) else {
                        isGiven.signal()
                        return nil
                    }
                    return ByteBuffer(repeating: 0, count: kibibytes << 10)
                }
                let failure = try await self.failure(path) { client in
                    _ = try await client.sendResource(to: .peer("bob"), name: "a", size: Int64(kibibytes << 10), content: content)
                }
                isOver.signal()
                guard case .problem(let problem)? = failure else {
                    Issue.record("heard \(String(describing: failure))")
                    return
                }
                #expect(problem.code == "too-large")
            }
        }
    }

    /// A daemon that answers each request on a connection of its own, with the same document.
    private func answer(_ listener: CInt, with json: String, times: Int) {
        Thread.detachNewThread {
            for _ in 0..<times {
                let client = accept(listener, nil, nil)
                var bytes = [UInt8](repeating: 0, count: 4096)
                _ = recv(client, &bytes, bytes.count, 0)
                let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
                let answer = Array("\(head)Content-Length: \(json.utf8.count)\r\n\r\n\(json)".utf8)
                _ = send(client, answer, answer.count, Int32(MSG_NOSIGNAL))
                close(client)
            }
        }
    }

    @Test func aClientIsUsedUntilItIsShutDown() async throws {
        try await self.withListener { listener, path in
            self.answer(listener, with: #"{"marked":3}"#, times: 2)
            let client = ControlClient(socketPath: path)
            let copy = client
            let marked = [try await client.markRead([]), try await copy.markRead([])]
            #expect(marked == [3, 3])
            await client.shutdown()
            await client.shutdown()
            let failure = await #expect(throws: ControlError.self) { _ = try await copy.markRead([]) }
            #expect(failure == .unreachable(path: path, reason: "the client was shut down", code: nil))
        }
    }

    /// The end of the last copy closes the connections, and the HTTP library does not complain.
    @Test func aClientThatIsReleasedIsShutDown() async throws {
        try await self.withListener { listener, path in
            self.answer(listener, with: #"{"marked":1}"#, times: 1)
            func call() async throws -> Int { try await ControlClient(socketPath: path).markRead([]) }
            let marked = try await call()
            #expect(marked == 1)
        }
    }

    @Test func aWithdrawnInvitationIsReturned() async throws {
        try await self.withListener { listener, path in
            var generated = GeneratedModels(seed: 3)
            let invitation = generated.invitation()
            self.answer(listener, with: String(decoding: try ControlJSON.encode(invitation), as: UTF8.self), times: 1)
            let reply = try await ControlClient.with(socketPath: path) { try await $0.withdraw(invitation.id) }
            #expect(reply.value == invitation && reply.state == invitation.state)
        }
    }

    /// The wait blocks a thread of its own, and cancelling the task does not end that thread automatically.
    @Test func aWaitForAStreamEndsWithItsTask() async throws {
        try await self.withListener { listener, path in
            let waiting = Task {
                try await ControlClient.with(socketPath: path) { _ = try await $0.nextStream() }
            }
            let client = accept(listener, nil, nil)
            waiting.cancel()
            await #expect(throws: ControlError.cancelled) { try await waiting.value }
            var bytes = [UInt8](repeating: 0, count: 4096)
            while recv(client, &bytes, bytes.count, 0) > 0 {}
            #expect(recv(client, &bytes, bytes.count, 0) == 0, "the daemon sees that its caller has gone")
            close(client)
        }
    }

    /// Answers the next request, whose bytes end with `end`, and returns it.
    private static func exchange(_ listener: CInt, until end: String, _ answer: String) async -> String {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                let client = accept(listener, nil, nil)
                var (request, bytes) = ("", [UInt8](repeating: 0, count: 4096))
                while !request.hasSuffix(end), case let count = recv(client, &bytes, bytes.count, 0), count > 0 {
                    request += String(decoding: bytes[..<count], as: UTF8.self)
                }
                _ = write(client, answer, answer.utf8.count)
                close(client)
                continuation.resume(returning: request)
            }
        }
    }

    /// A daemon that takes no descriptors of streams (405), and one that takes no more of them (503).
    @Test(arguments: [405, 503]) func aStreamGoesByBytesWhereNoDescriptorIsTaken(_ status: Int) async throws {
        let row = ControlAPI.Stream(
            id: try #require(StreamID(UUID().uuidString.lowercased())), direction: .known(.outgoing),
            peerID: try #require(PeerID(String(repeating: "A", count: 52))), peerName: "bob", name: "x", state: .known(.closed),
            transferred: 2, bytesPerSecond: 0, openedAt: Date(timeIntervalSince1970: 0))
        let json = String(decoding: try ControlJSON.encode(row), as: UTF8.self)
        let source = Pipe()
        source.fileHandleForWriting.write(Data("hi".utf8))
        try source.fileHandleForWriting.close()
        try await self.withListener { listener, path in
            let input = source.fileHandleForReading
            async let sent = ControlClient.with(socketPath: path) {
                try await $0.openStream(to: "bob", name: "x", from: input.fileDescriptor).value
            }
            let problem = #"{"code":"unsupported","title":"no","status":\#(status),"type":"about:blank"}"#
            let asked = await Self.exchange(
                listener, until: "\r\n\r\n", "HTTP/1.1 \(status) No\r\nContent-Length: \(problem.utf8.count)\r\n\r\n\(problem)")
            #expect(asked.hasPrefix("POST /v1/streams/descriptor?") && asked.contains("Upgrade: earshot-descriptor\r\n"))
            let got = await Self.exchange(
                listener, until: "0\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: \(json.utf8.count)\r\n\r\n\(json)")
            #expect(got.hasPrefix("POST /v1/streams?") && got.hasSuffix("\r\n\r\n2\r\nhi\r\n0\r\n\r\n"))
            let answered = try await sent
            #expect(answered == row)
        }
    }

    /// An older daemon answers the request for a descriptor with the stream's bytes.
    @Test func anOlderDaemonsStreamComesByBytes() async throws {
        let sink = Pipe()
        try await self.withListener { listener, path in
            let output = sink.fileHandleForWriting
            async let moved: Void = ControlClient.with(socketPath: path) {
                let stream = try #require(try await $0.nextStream(name: "x", into: output.fileDescriptor))
                try await stream.move(to: output.fileDescriptor)
            }
            let asked = await Self.exchange(
                listener, until: "\r\n\r\n",
                "HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n")
            #expect(asked.hasPrefix("GET /v1/streams/next/content?name=x ") && asked.contains("Upgrade: earshot-descriptor\r\n"))
            try await moved
            try output.close()
        }
        #expect(sink.fileHandleForReading.readDataToEndOfFile() == Data("hi".utf8))
    }
}
