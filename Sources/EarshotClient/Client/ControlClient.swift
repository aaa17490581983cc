import AsyncHTTPClient
import NIOCore
import NIOHTTP1
import NIOPosix

/// A client of the control API on the daemon's Unix socket. The API's document is `earshotd/OpenAPI/openapi.json`.
///
/// One call a function, in `ControlClient+Calls.swift`. A call that only looks is given up after a while without an answer; the others have
/// no time limit of their own, since several of them wait for a person or for another machine: cancel the task to give one up. Made by
/// ``with(socketPath:patience:onUnreadable:_:)``, which closes the connections at its end.
public struct ControlClient: Sendable {
    /// Where the daemon listens.
    public let socketPath: String
    private let http: HTTPClient

    /// The most bytes of an answer that is not a stream: a page of messages fits.
    static let answerLimit = 256 * 1024 * 1024

    /// How long a daemon may take to answer a call that waits for no peer or person: far longer than a busy one takes, so that it hangs.
    public static let patience: Duration = .seconds(30)
    private let patience: Duration

    /// The most calls at a time, beyond which others wait. Some take as long as a program runs, and each holds its connection; but a burst of
    /// calls is not to take all descriptors of a process, nor all places of the daemon.
    private static let connectionLimit = 128

    private let onUnreadable: @Sendable (String) -> Void

    private init(socketPath: String, patience: Duration, http: HTTPClient, onUnreadable: @escaping @Sendable (String) -> Void) {
        self.socketPath = socketPath
        self.patience = patience
        self.http = http
        self.onUnreadable = onUnreadable
    }

    /// Calls `body` with a client of the daemon at the socket, and closes its connections afterwards.
    ///
    /// What the client cannot read of an answer, and goes on without, is told to `onUnreadable` in words that may quote a peer.
    public static func with<Result: Sendable>(
        socketPath: String = ControlSocket.path(given: nil), patience: Duration = Self.patience,
        onUnreadable: @escaping @Sendable (String) -> Void = { _ in },
        _ body: (ControlClient) async throws -> Result
    ) async throws -> Result {
        var configuration = HTTPClient.Configuration()
        configuration.httpVersion = .http1Only
        configuration.redirectConfiguration = .disallow
        // A daemon that is not there is told at once, not after attempts for ten seconds.
        configuration.connectionPool.retryConnectionEstablishment = false
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = Self.connectionLimit
        configuration.http1_1ConnectionDebugInitializer = { channel in
            channel.eventLoop.makeCompletedFuture {
                try channel.pipeline.syncOperations.addHandler(AnswerDecidesHandler(), position: .first)
            }
        }
        let http = HTTPClient(eventLoopGroupProvider: .shared(MultiThreadedEventLoopGroup.singleton), configuration: configuration)
        do {
            let result = try await body(ControlClient(socketPath: socketPath, patience: patience, http: http, onUnreadable: onUnreadable))
            try? await http.shutdown()
            return result
        } catch {
            try? await http.shutdown()
            throw error
        }
    }

    /// A body of a request.
    enum Body: Sendable {
        case none
        case json([UInt8])
        /// Bytes as they come, with back-pressure; their number where it is known.
        case stream(AsyncStreamOfBytes, length: Int64?)
        /// JSON documents as they come, a line each, with back-pressure.
        case lines(AsyncStreamOfBytes)
    }

    /// Sends a request and returns the head of its answer, for which it waits that long; a problem is thrown.
    func open(
        _ method: HTTPMethod, _ path: String, body: Body = .none, accept: String = "application/json", prefer: String? = nil,
        within limit: Duration? = nil
    ) async throws(ControlError) -> HTTPClientResponse {
        try Self.check(path)
        var request = HTTPClientRequest(url: "http+unix://\(ControlPath.encode(self.socketPath))\(path)")
        request.method = method
        // Of a Unix socket's address the library would make a Host that the daemon rightly refuses.
        request.headers.replaceOrAdd(name: "Host", value: "localhost")
        request.headers.replaceOrAdd(name: "Accept", value: accept)
        if let prefer { request.headers.replaceOrAdd(name: "Prefer", value: prefer) }
        request.headers.replaceOrAdd(name: "User-Agent", value: "earshot/\(EarshotVersion.current)")
        switch body {
        case .none: break
        case .json(let bytes):
            request.headers.replaceOrAdd(name: "Content-Type", value: "application/json")
            request.body = .bytes(ByteBuffer(bytes: bytes))
        case .stream(let bytes, let length):
            request.headers.replaceOrAdd(name: "Content-Type", value: "application/octet-stream")
            request.body = .stream(bytes, length: length.map { .known($0) } ?? .unknown)
        case .lines(let bytes):
            request.headers.replaceOrAdd(name: "Content-Type", value: "application/x-ndjson")
            request.body = .stream(bytes, length: .unknown)
        }
        let response: HTTPClientResponse
        do {
            response = try await self.http.execute(request, deadline: limit.map { .now() + TimeAmount($0) } ?? .distantFuture)
        } catch {
            throw self.failure(error, answered: false)
        }
        guard (200..<300).contains(response.status.code) else {
            throw Self.problem(try await self.collect(response), status: Int(response.status.code))
        }
        return response
    }

    /// An empty name in a path would make it that of another call: every peer's instead of one's.
    private static func check(_ path: String) throws(ControlError) {
        let route = path.prefix { $0 != "?" }
        guard !route.hasSuffix("/"), !route.contains("//") else {
            throw .problem(
                ControlAPI.Problem(
                    title: "Bad Request", status: 400, detail: "the name is empty; give a name, an id or its first 8 characters",
                    code: "invalid-parameter"))
        }
    }

    /// Sends a request and decodes its answer.
    func call<Value: Decodable & Sendable>(
        _ method: HTTPMethod, _ path: String, body: Body = .none, as type: Value.Type
    ) async throws(ControlError) -> ControlReply<Value> {
        let response = try await self.open(method, path, body: body, within: method == .GET ? self.patience : nil)
        let json = try await self.collect(response)
        let reply: ControlReply<Value> = try Self.reply(json, to: "\(method) \(path)")
        self.tell(reply.unreadable, of: "the answer to \(method) \(path)")
        return reply
    }

    /// Tells what could not be read.
    func tell(_ parts: [String], of answer: String) {
        for part in parts { self.onUnreadable("\(answer): \(part)") }
    }

    /// An answer to a call, decoded.
    static func reply<Value: Decodable & Sendable>(_ json: [UInt8], to call: String) throws(ControlError) -> ControlReply<Value> {
        do {
            let (value, unreadable) = try ControlJSON.read(Value.self, from: json)
            return ControlReply(value: value, json: json, unreadable: unreadable)
        } catch {
            throw .malformed("the daemon's answer to \(call): \(error)")
        }
    }

    /// Sends a request whose answer says nothing, or what the caller does not want to know.
    func perform(_ method: HTTPMethod, _ path: String, body: Body = .none) async throws(ControlError) {
        _ = try await self.collect(try await self.open(method, path, body: body))
    }

    /// The whole body of an answer.
    func collect(_ response: HTTPClientResponse) async throws(ControlError) -> [UInt8] {
        do {
            let buffer = try await response.body.collect(upTo: Self.answerLimit)
            return Array(buffer.readableBytesView)
        } catch is NIOTooManyBytesError {
            throw .malformed("the daemon's answer is longer than \(Self.answerLimit) bytes")
        } catch {
            throw self.failure(error, answered: true)
        }
    }

    /// What the body of an answer that is no success says.
    static func problem(_ json: [UInt8], status: Int) -> ControlError {
        guard let problem = try? ControlJSON.decode(ControlAPI.Problem.self, from: json) else {
            return .malformed("the daemon answered with status \(status) and no explanation")
        }
        return .problem(problem)
    }

    /// What an error of the HTTP client means; `answered` says whether the daemon had begun to answer.
    func failure(_ error: any Error, answered: Bool) -> ControlError {
        switch error {
        case let error as ControlError: return error
        case is CancellationError: return .cancelled
        case let error as HTTPClientError where error == .cancelled: return .cancelled
        case let error as HTTPClientError where error == .deadlineExceeded || error == .getConnectionFromPoolTimeout:
            return .silent(path: self.socketPath)
        case let error as IOError where !answered:
            return .unreachable(path: self.socketPath, reason: SystemError.reason(error.errnoCode), code: error.errnoCode)
        case let error as IOError: return .lost(path: self.socketPath, reason: SystemError.reason(error.errnoCode))
        case is SocketAddressError:
            return .unreachable(path: self.socketPath, reason: "the path is too long for a socket", code: nil)
        // One that breaks off is a daemon that was killed in the middle of its answer.
        case let error as HTTPParserError where !answered && error != .invalidEOFState:
            return .malformed("what listens at \(self.socketPath) speaks no HTTP")
        case is ChannelError: return .lost(path: self.socketPath, reason: "it closed the connection")
        case let error as HTTPClientError where error == .remoteConnectionClosed:
            return .lost(path: self.socketPath, reason: "it closed the connection")
        default:
            if answered { return .lost(path: self.socketPath, reason: "\(error)") }
            return .unreachable(path: self.socketPath, reason: "\(error)", code: nil)
        }
    }
}
