internal import CLinux
import Dispatch
import EarshotSafety
public import EarshotWire
import Glibc
import Synchronization

/// Streams, whose bytes bypass the HTTP library and move directly between the daemon's socket and this process's input or output.
extension ControlClient {
    /// A queue of its own: threads that block on a stream's connection must not delay other work.
    private static let threads = DispatchQueue(label: "streams", attributes: .concurrent)

    /// `POST /v1/streams` with everything from `input` as the body; answers when the receiver has read all of it. If the task is cancelled,
    /// the stream is aborted and the call throws `cancelled`.
    ///
    /// If `input` is a pipe or an ordinary file, it is passed to the daemon, which reads it from its position on. Otherwise, and if the
    /// daemon does not take it, its bytes are sent.
    @discardableResult
    public func openStream(
        to peer: any PeerReference, name: String, from input: CInt
    ) async throws(ControlError) -> ControlReply<ControlAPI.Stream> {
        let query = [("to", peer.description), ("name", name)]
        let path = ControlPath.path(["streams"], query: query)
        let socketPath = self.socketPath
        // If it is not open for reading, the error of read(2) is reported.
        if earshot_is_readable(input) != 0, PassedDescriptor.canCarryStream(input) {
            let passing = ControlPath.path(["streams", "descriptor"], query: query)
            let stream = try await Self.onThread { interruption throws(ControlError) in
                let connection = try interruption.watch(try StreamConnection(socketPath: socketPath))
                try connection.send("POST", passing, upgrade: ControlAPI.descriptorProtocol)
                return try Self.pass(input, on: connection, try connection.receiveHead())
            }
            if let stream { return ControlReply(value: stream, json: (try? ControlJSON.encode(stream)) ?? []) }
        }
        let json = try await Self.onThread { interruption throws(ControlError) in
            let connection = try interruption.watch(try StreamConnection(socketPath: socketPath))
            try connection.send("POST", path, chunks: true)
            try connection.sendBody(from: input)
            return try connection.receiveAll(of: try Self.success(connection))
        }
        return try Self.reply(json, to: "POST \(path)")
    }

    /// `GET /v1/streams/next/content`: waits for the next stream, with this name and from this peer if given, and accepts it. The wait is
    /// unlimited without a timeout, which is rounded up to whole seconds, at most a year. If the task is cancelled, the call throws
    /// `cancelled`.
    public func nextStream(
        name: String? = nil, from peer: (any PeerReference)? = nil, timeout: Duration? = nil
    ) async throws(ControlError) -> ControlStream {
        let path = Self.nextPath(name, peer, timeout)
        let socketPath = self.socketPath
        return try await Self.onThread { interruption throws(ControlError) in
            let connection = try interruption.watch(try StreamConnection(socketPath: socketPath))
            try connection.send("GET", path, chunks: false)
            return try Self.stream(on: connection, try Self.success(connection))
        }
    }

    private static func nextPath(_ name: String?, _ peer: (any PeerReference)?, _ timeout: Duration?) -> String {
        let query = [("name", name), ("from", peer?.description), ("timeout_seconds", timeout.map { "\($0.wholeSeconds)" })]
        return ControlPath.path(["streams", "next", "content"], query: query)
    }

    private static func stream(on connection: StreamConnection, _ answer: StreamAnswer) throws(ControlError) -> ControlStream {
        guard answer.contentLength == nil else { throw .malformed("the daemon's answer is no stream") }
        return ControlStream(id: answer.fields["earshot-stream"].flatMap(StreamID.init), connection: connection)
    }

    /// As ``nextStream(name:from:timeout:)``, and moves the stream to `output` if that is a pipe or an ordinary file, which is passed to
    /// the daemon. Answers when the stream has ended and the daemon has written everything.
    /// - Returns: `nil` if the stream was moved; otherwise the accepted stream, whose bytes the caller moves.
    /// - Throws: also `output` if `output` cannot be written. The stream is then aborted.
    public func nextStream(
        name: String? = nil, from peer: (any PeerReference)? = nil, timeout: Duration? = nil, into output: CInt
    ) async throws(ControlError) -> ControlStream? {
        // If it is not open for writing, the error of write(2) is reported.
        guard earshot_is_writable(output) != 0, PassedDescriptor.canCarryStream(output) else {
            return try await self.nextStream(name: name, from: peer, timeout: timeout)
        }
        let path = Self.nextPath(name, peer, timeout)
        let socketPath = self.socketPath
        let (stream, isMoved) = try await Self.onThread { interruption throws(ControlError) -> (ControlStream?, Bool) in
            let connection = try interruption.watch(try StreamConnection(socketPath: socketPath))
            try connection.send("GET", path, upgrade: ControlAPI.descriptorProtocol)
            let answer = try connection.receiveHead()
            if (200..<300).contains(answer.status) { return (try Self.stream(on: connection, answer), false) }
            do throws(ControlError) {
                return (nil, try Self.pass(output, on: connection, answer) != nil)
            } catch {
                throw Self.outputError(error, output)
            }
        }
        if stream != nil || isMoved { return stream }
        return try await self.nextStream(name: name, from: peer, timeout: timeout)
    }

    /// Returns the error of a stream that the daemon could not write.
    private static func outputError(_ error: ControlError, _ output: CInt) -> ControlError {
        guard case .problem(let problem) = error else { return error }
        var reader = pollfd(fd: output, events: 0, revents: 0)
        if poll(&reader, 1, 0) > 0, reader.revents & Int16(POLLERR) != 0 { return .output(reason: SystemError.reason(EPIPE), code: EPIPE) }
        return switch problem.code {
        case .known(.noSpace): .output(reason: error.description, code: ENOSPC)
        case .known(.storage): .output(reason: error.description, code: EIO)
        case .known, .unknown: error
        }
    }

    /// Passes a descriptor after the answer 101, and returns the stream when it has ended. Returns `nil` if the daemon did not take the
    /// descriptor: in an older version (405), with too many others (503), or because a relay forwards the socket.
    private static func pass(
        _ descriptor: CInt, on connection: StreamConnection, _ answer: StreamAnswer
    ) throws(ControlError) -> ControlAPI.Stream? {
        if [405, 503].contains(answer.status) { return nil }
        guard answer.status == 101 else { throw Self.problem(try connection.receiveAll(of: answer), status: answer.status) }
        connection.pass(descriptor)
        let line = try Self.reply(try connection.receiveLine(), to: "a stream") as ControlReply<ControlAPI.DescriptorLine>
        if let problem = line.value.problem {
            if problem.code == .known(.invalidParameter) { return nil }
            throw .problem(problem)
        }
        guard let stream = line.value.stream else { throw .malformed("the daemon's answer is no stream") }
        return stream
    }

    /// Receives the answer's head. Throws the daemon's problem.
    private static func success(_ connection: StreamConnection) throws(ControlError) -> StreamAnswer {
        let answer = try connection.receiveHead()
        guard (200..<300).contains(answer.status) else {
            throw Self.problem(try connection.receiveAll(of: answer), status: answer.status)
        }
        return answer
    }

    /// Runs blocking work on a thread. If the task is cancelled meanwhile, the connection that the thread watches is shut down.
    static func onThread<Value: Sendable>(
        _ work: @escaping @Sendable (Interruption) throws(ControlError) -> Value
    ) async throws(ControlError) -> Value {
        let interruption = Interruption()
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<Result<Value, ControlError>, Never>) in
                Self.threads.async {
                    do throws(ControlError) {
                        continuation.resume(returning: .success(try work(interruption)))
                    } catch {
                        continuation.resume(returning: .failure(interruption.isCancelled ? .cancelled : error))
                    }
                }
            }
        } onCancel: {
            interruption.cancel()
        }
        return try result.get()
    }
}

/// Shuts down the connection of a thread when the thread's task is cancelled.
final class Interruption: Sendable {
    private struct State {
        var socket: StreamSocket?
        var isCancelled = false
    }

    private let state = Mutex(State())

    var isCancelled: Bool { self.state.withLock { $0.isCancelled } }

    /// Sets the connection on which the thread is about to block.
    /// - Throws: `cancelled`.
    func watch(_ connection: StreamConnection) throws(ControlError) -> StreamConnection {
        let socket = connection.socket
        let isCancelled = self.state.withLock { state in
            state.socket = socket
            return state.isCancelled
        }
        guard !isCancelled else { throw .cancelled }
        return connection
    }

    func cancel() {
        self.state.withLock { state in
            state.isCancelled = true
            state.socket?.interrupt()
        }
    }
}

/// An incoming stream from the daemon, read at the reader's pace.
///
/// Unchecked: only one caller at a time uses the connection, first the creator, then ``move(to:)``, which ends it.
public struct ControlStream: @unchecked Sendable {
    /// The stream's id.
    public let id: StreamID?
    private let connection: StreamConnection

    init(id: StreamID?, connection: StreamConnection) {
        self.id = id
        self.connection = connection
    }

    /// Moves the stream to a descriptor until the stream ends. May be called once. If the task is cancelled, the stream is aborted and the
    /// call throws `cancelled` after the descriptor has accepted the pending bytes.
    /// - Throws: ``ControlError/output(reason:code:)`` if the descriptor cannot be written; `lost`, `malformed`, `cancelled`.
    public func move(to output: CInt) async throws(ControlError) {
        let stream = self
        try await ControlClient.onThread { interruption throws(ControlError) in
            try interruption.watch(stream.connection).receiveBody(to: output)
        }
    }
}
