internal import CLinux
internal import Earshot
internal import EarshotClient
internal import EarshotSafety
internal import Glibc
internal import HTTPTypes
internal import Hummingbird
internal import NIOCore
internal import NIOPosix

/// A client's connection that has left HTTP to pass an open descriptor (unix(7), `SCM_RIGHTS`). A request asks for that with
/// `Upgrade: earshot-descriptor` (RFC 9110 section 7.8). After the answer 101, one byte passes with the descriptor, to the client or from it.
/// Then JSON lines tell the client what becomes of its descriptor (``ControlAPI/DescriptorLine``).
///
/// NIO reads sockets without their descriptors. The socket therefore leaves its channel before the answer, and has a new one afterwards.
struct DescriptorConnection: Sendable {
    /// The longest time from the answer 101 to the client's descriptor.
    static let descriptorTime: Duration = .seconds(5)

    private static let answer =
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: \(ControlAPI.descriptorProtocol)\r\n\r\n"
    private static let upgradeField = HTTPField.Name("Upgrade")

    /// The connection's new channel.
    private let channel: any Channel

    /// The request's connection has left HTTP, so that the request has no further answer.
    struct Taken: Error {}

    /// Whether the request asks for this protocol. Another protocol in `Upgrade` is ignored, as the RFC permits.
    static func isWanted(by head: HTTPRequest) -> Bool {
        guard let field = self.upgradeField else { return false }
        return head.headerFields[values: field].contains { value in
            value.split(separator: ",").contains { $0.drop { $0 == " " }.lowercased() == ControlAPI.descriptorProtocol }
        }
    }

    /// The use of a client's descriptor, for which it must be open.
    enum Access {
        case reading, writing
    }

    /// The fields of an answer that offers this protocol.
    static var fields: HTTPFields {
        var fields: HTTPFields = [.connection: "Upgrade"]
        if let name = self.upgradeField { fields[name] = ControlAPI.descriptorProtocol }
        return fields
    }

    /// - Throws: `invalid-parameter` if the request has a body, which would be taken for the descriptor's byte.
    static func requireNoBody(_ request: Request) throws(APIProblem) {
        guard request.headers[.contentLength] ?? "0" == "0", request.headers[.transferEncoding] == nil else {
            throw APIProblem(.invalidParameter, "a request that passes a descriptor has no body", closesConnection: true)
        }
    }

    /// Receives the client's descriptor, and answers the request with the result of `work`, which is cancelled when the client disconnects.
    /// `subject` is the file's name in errors.
    /// - Throws: `busy` if too many connections have moved; otherwise always ``Taken``, when everything is done.
    static func receive(
        _ context: APIContext, subject: String, for access: Access,
        _ work: @escaping @Sendable (OpenFile, Self) async throws -> ControlAPI.DescriptorLine
    ) async throws -> Never {
        try await self.enter(context)
        defer { context.moved.leave() }
        let socket = try await self.socket(of: context.channel)
        let file = await self.file(from: socket.descriptor, subject: subject, for: access)
        let channel: any Channel
        do {
            channel = try await socket.channel(on: MultiThreadedEventLoopGroup.singleton) { channel in
                // A client that closes its half has gone.
                channel.setOption(.allowRemoteHalfClosure, value: false).flatMapThrowing {
                    try channel.pipeline.syncOperations.addHandler(DescriptorLinesHandler())
                    return channel
                }
            }
        } catch {
            throw Taken()
        }
        context.moved.add(channel)
        let connection = Self(channel: channel)
        let last: ControlAPI.DescriptorLine
        do {
            let file = try file.get()
            last = try await ClientPresence.required(on: channel) { try await work(file, connection) }
        } catch {
            last = ControlAPI.DescriptorLine(problem: ProblemResponse.model(APIProblem(error)))
        }
        await connection.end(with: last)
        throw Taken()
    }

    /// Answers the request with an open file, and closes the connection. The client gets no other right than the descriptor's.
    /// - Throws: as ``receive(_:subject:_:)``.
    static func pass(_ file: OpenFile, _ context: APIContext) async throws -> Never {
        try await self.enter(context)
        defer { context.moved.leave() }
        let socket = try await self.socket(of: context.channel).descriptor
        // The socket has room. A client that has gone needs no answer.
        if self.sendAnswer(on: socket) { _ = earshot_send_descriptor(socket, file.descriptor) }
        close(socket)
        throw Taken()
    }

    /// Finishes earlier answers, and takes a place for the connection.
    private static func enter(_ context: APIContext) async throws {
        do { try await OrderlyCloseHandler.flush(context.channel) } catch { throw Taken() }
        guard context.moved.enter() else {
            throw APIProblem(.busy, "too many connections pass open files; try again later", status: .serviceUnavailable)
        }
    }

    /// Takes the socket from its channel, which is closed.
    private static func socket(of channel: any Channel) async throws -> MovedConnections.Socket {
        let socket = try await channel.eventLoop.submit {
            defer { channel.close(promise: nil) }
            return MovedConnections.Socket(of: channel, unread: ByteBuffer())
        }.get()
        guard let socket else { throw Taken() }
        return socket
    }

    /// Answers 101. Returns whether the kernel has taken the answer.
    private static func sendAnswer(on socket: CInt) -> Bool {
        let answer = Array(self.answer.utf8)
        return answer.withUnsafeBytes { earshot_send(socket, $0.baseAddress, $0.count, 0) } == answer.count
    }

    /// Answers 101 and waits for the descriptor, on a thread. Its file is not examined, which may take as long as a server is away.
    private static func file(from socket: CInt, subject: String, for access: Access) async -> Result<OpenFile, any Error> {
        await withCheckedContinuation { continuation in
            do throws(EarshotError) {
                let thread = try ThreadExecutor(name: "earshot-descr")
                thread.run { continuation.resume(returning: Result { try self.receive(from: socket, subject: subject, for: access) }) }
                thread.stop()
            } catch {
                continuation.resume(returning: .failure(error))
            }
        }
    }

    private static func receive(from socket: CInt, subject: String, for access: Access) throws(APIProblem) -> OpenFile {
        // The socket has room, because the kernel has taken every earlier answer.
        guard self.sendAnswer(on: socket) else { throw Self.missing }
        var waiting = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
        guard poll(&waiting, 1, CInt(Self.descriptorTime / .milliseconds(1))) > 0 else { throw Self.missing }
        var descriptor: CInt = -1
        guard earshot_receive_descriptor(socket, &descriptor) == 1 else { throw Self.missing }
        let file = OpenFile(descriptor: descriptor, subject: subject)
        switch access {
        case .reading where earshot_is_readable(descriptor) == 0:
            throw APIProblem(.invalidSource, "\(subject.escapedForDisplay) is not open for reading")
        case .writing where earshot_is_writable(descriptor) == 0:
            throw APIProblem(.invalidSource, "\(subject.escapedForDisplay) is not open for writing")
        case .reading, .writing: return file
        }
    }

    private static var missing: APIProblem {
        APIProblem(.invalidParameter, "one byte with exactly one descriptor must follow the answer 101 within \(Self.descriptorTime)")
    }

    /// Sends a line. Returns when the client's socket has taken it.
    func tell(_ line: ControlAPI.DescriptorLine) async throws {
        try await self.channel.writeAndFlush(ByteBuffer(bytes: try ControlJSON.encode(line) + [UInt8(ascii: "\n")])).get()
    }

    /// Sends the last line, and closes the connection.
    private func end(with line: ControlAPI.DescriptorLine) async {
        let channel = self.channel
        let limit = channel.eventLoop.scheduleTask(in: OrderlyCloseHandler.abandonedTime) { channel.close(promise: nil) }
        try? await self.tell(line)
        limit.cancel()
        try? await channel.close()
    }
}

/// Drops what the client sends behind its descriptor, and ends the connection soon after the server's end.
private final class DescriptorLinesHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {}

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event is ChannelShouldQuiesceEvent {
            let channel = context.channel
            context.eventLoop.scheduleTask(in: OrderlyCloseHandler.time) { channel.close(promise: nil) }
        }
        context.fireUserInboundEventTriggered(event)
    }
}
