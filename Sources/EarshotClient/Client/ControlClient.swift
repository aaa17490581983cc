import AsyncHTTPClient
import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization

/// A client of the control API on the daemon's Unix socket. The API's document is `earshotd/OpenAPI/openapi.json`.
///
/// `ControlClient+Calls.swift` has one function per call. A call that only reads fails after `patience` without an answer. The other calls
/// have no timeout, since several of them wait for a user or another machine: to stop one, cancel its task.
///
/// A client is a handle: copies share its connections, which open when they are needed. ``shutdown()`` closes them, and so does the end of
/// the last copy. ``with(socketPath:patience:onUnreadable:_:)`` creates a client for one piece of work, and closes its connections before
/// it returns.
///
/// ```swift
/// let client = ControlClient()
/// print(try await client.status().name)
/// await client.shutdown()
/// ```
public struct ControlClient: Sendable {
    /// The path of the daemon's socket.
    public let socketPath: String
    private let connections: Connections

    /// The most bytes of an answer that is not a stream: enough for a page of messages.
    static let answerLimit = 256 * 1024 * 1024

    /// The longest time for an answer that does not depend on a peer or user: far longer than a busy daemon takes, so that the daemon
    /// hangs.
    public static let patience: Duration = .seconds(30)
    private let patience: Duration

    /// The most concurrent calls; further calls wait. Some calls last as long as the program and hold their connections. The limit keeps a
    /// burst of calls from using up the process's descriptors, or the daemon's connections.
    private static let connectionLimit = 128

    private let onUnreadable: @Sendable (String) -> Void

    /// Creates a client of the daemon at the socket. Connects at the first call, not here.
    ///
    /// - Parameters:
    ///   - socketPath: The daemon's socket, at most 107 bytes; see ``ControlSocket/path(given:)``.
    ///   - patience: The longest time for the answer to a call that only reads.
    ///   - onUnreadable: Called for each part of an answer that the client cannot read and leaves out. The text may quote a peer.
    public init(
        socketPath: String = ControlSocket.path(given: nil), patience: Duration = Self.patience,
        onUnreadable: @escaping @Sendable (String) -> Void = { _ in }
    ) {
        self.socketPath = socketPath
        self.patience = patience
        self.connections = Connections()
        self.onUnreadable = onUnreadable
    }

    /// Closes the connections of this client and all its copies. Pending calls fail, and later ones throw
    /// ``ControlError/unreachable(path:reason:code:)``. Does not affect streams of bytes, which have connections of their own.
    public func shutdown() async { await self.connections.close() }

    /// Calls `body` with a client of the daemon at the socket, and closes its connections afterwards. The parameters are the same as for
    /// ``init(socketPath:patience:onUnreadable:)``.
    public static func with<Result: Sendable>(
        socketPath: String = ControlSocket.path(given: nil), patience: Duration = Self.patience,
        onUnreadable: @escaping @Sendable (String) -> Void = { _ in },
        _ body: (ControlClient) async throws -> Result
    ) async throws -> Result {
        let client = ControlClient(socketPath: socketPath, patience: patience, onUnreadable: onUnreadable)
        do {
            let result = try await body(client)
            await client.shutdown()
            return result
        } catch {
            await client.shutdown()
            throw error
        }
    }

    /// The HTTP client, which must be shut down.
    private final class Connections: Sendable {
        let http: HTTPClient
        private let isClosed = Atomic(false)

        init() {
            self.http = HTTPClient(
                eventLoopGroupProvider: .shared(MultiThreadedEventLoopGroup.singleton), configuration: Self.configuration)
        }

        func close() async {
            if !self.isClosed.exchange(true, ordering: .relaxed) { try? await self.http.shutdown() }
        }

        deinit {
            if !self.isClosed.load(ordering: .relaxed) { self.http.shutdown { _ in } }
        }

        private static var configuration: HTTPClient.Configuration {
            var configuration = HTTPClient.Configuration()
            configuration.httpVersion = .http1Only
            configuration.redirectConfiguration = .disallow
            // An absent daemon is reported at once, instead of after ten seconds of attempts.
            configuration.connectionPool.retryConnectionEstablishment = false
            configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = ControlClient.connectionLimit
            configuration.http1_1ConnectionDebugInitializer = { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(AnswerDecidesHandler(), position: .first)
                }
            }
            return configuration
        }
    }

    /// The body of a request.
    enum Body: Sendable {
        case none
        case json([UInt8])
        /// Bytes with back-pressure; with their number, if it is known.
        case stream(AsyncStreamOfBytes, length: Int64?)
        /// JSON documents, one per line, with back-pressure.
        case lines(AsyncStreamOfBytes)
    }

    /// Sends a request and returns the head of its answer, waiting at most `limit`. Throws the daemon's problem.
    func open(
        _ method: HTTPMethod, _ path: String, body: Body = .none, accept: String = "application/json", prefer: String? = nil,
        within limit: Duration? = nil
    ) async throws(ControlError) -> HTTPClientResponse {
        try Self.check(path)
        var request = HTTPClientRequest(url: "http+unix://\(ControlPath.encode(self.socketPath))\(path)")
        request.method = method
        // For a Unix socket's address, the library would generate a Host header that the daemon refuses.
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
            response = try await self.connections.http.execute(request, deadline: limit.map { .now() + TimeAmount($0) } ?? .distantFuture)
        } catch {
            throw self.failure(error, answered: false)
        }
        guard (200..<300).contains(response.status.code) else {
            throw Self.problem(try await self.collect(response), status: Int(response.status.code))
        }
        return response
    }

    /// Refuses an empty name: the path would be that of another call, for all peers instead of one.
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

    /// Reports unreadable parts to `onUnreadable`.
    func tell(_ parts: [String], of answer: String) {
        for part in parts { self.onUnreadable("\(answer): \(part)") }
    }

    /// Decodes an answer to a call.
    static func reply<Value: Decodable & Sendable>(_ json: [UInt8], to call: String) throws(ControlError) -> ControlReply<Value> {
        do {
            let (value, unreadable) = try ControlJSON.read(Value.self, from: json)
            return ControlReply(value: value, json: json, unreadable: unreadable)
        } catch {
            throw .malformed("the daemon's answer to \(call): \(error)")
        }
    }

    /// Sends a request whose answer is empty or not needed.
    func perform(_ method: HTTPMethod, _ path: String, body: Body = .none) async throws(ControlError) {
        _ = try await self.collect(try await self.open(method, path, body: body))
    }

    /// Receives the whole body of an answer.
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

    /// Returns the error for the body of an answer without success.
    static func problem(_ json: [UInt8], status: Int) -> ControlError {
        guard let problem = try? ControlJSON.decode(ControlAPI.Problem.self, from: json) else {
            return .malformed("the daemon answered with status \(status) and no explanation")
        }
        return .problem(problem)
    }

    /// Returns the error for an error of the HTTP client; `answered` says whether the daemon had begun to answer.
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
        case let error as HTTPClientError where error == .alreadyShutdown:
            return .unreachable(path: self.socketPath, reason: "the client was shut down", code: nil)
        case is SocketAddressError:
            return .unreachable(path: self.socketPath, reason: "the path is too long for a socket", code: nil)
        // An answer that breaks off comes from a daemon that was killed.
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
