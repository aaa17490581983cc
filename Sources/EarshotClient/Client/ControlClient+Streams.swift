import Dispatch
public import EarshotWire
import Glibc
import Synchronization

/// Streams, whose bytes bypass the HTTP library and move directly between the daemon's socket and this process's input or output.
extension ControlClient {
    /// A queue of its own: threads that block on a stream's connection must not delay other work.
    private static let threads = DispatchQueue(label: "streams", attributes: .concurrent)

    /// `POST /v1/streams` with everything from `input` as the body; answers when the receiver has read all of it. If the task is cancelled,
    /// the stream is aborted and the call throws `cancelled`.
    @discardableResult
    public func openStream(
        to peer: any PeerReference, name: String, from input: CInt
    ) async throws(ControlError) -> ControlReply<ControlAPI.Stream> {
        let path = ControlPath.path(["streams"], query: [("to", peer.description), ("name", name)])
        let socketPath = self.socketPath
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
        let query = [("name", name), ("from", peer?.description), ("timeout_seconds", timeout.map { "\($0.wholeSeconds)" })]
        let path = ControlPath.path(["streams", "next", "content"], query: query)
        let socketPath = self.socketPath
        return try await Self.onThread { interruption throws(ControlError) in
            let connection = try interruption.watch(try StreamConnection(socketPath: socketPath))
            try connection.send("GET", path, chunks: false)
            let answer = try Self.success(connection)
            guard answer.contentLength == nil else { throw .malformed("the daemon's answer to GET \(path) is no stream") }
            return ControlStream(id: answer.fields["earshot-stream"].flatMap(StreamID.init), connection: connection)
        }
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
