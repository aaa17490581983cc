import Dispatch
import Glibc
import Synchronization

/// Streams: their bytes go past the HTTP library, between the daemon's socket and this process's input or output.
extension ControlClient {
    /// What waits on a stream's connection must not hold up what runs beside it.
    private static let threads = DispatchQueue(label: "streams", attributes: .concurrent)

    /// `POST /v1/streams` with all that `input` has as the body; answers when the far reader has taken everything. A task that is cancelled
    /// aborts the stream, and throws `cancelled`.
    public func openStream(
        to peer: String, name: String, from input: CInt
    ) async throws(ControlError) -> ControlReply<ControlAPI.Stream> {
        let path = ControlPath.path(["streams"], query: [("to", peer), ("name", name)])
        let socketPath = self.socketPath
        let json = try await Self.onThread { interruption throws(ControlError) in
            let connection = try interruption.watch(try StreamConnection(socketPath: socketPath))
            try connection.send("POST", path, chunks: true)
            try connection.sendBody(from: input)
            return try connection.receiveAll(of: try Self.success(connection))
        }
        return try Self.reply(json, to: "POST \(path)")
    }

    /// `GET /v1/streams/next/content`: waits for the next stream of this name and from this peer, or any, and takes it. A task that
    /// is cancelled waits no more (`cancelled`).
    public func nextStream(name: String?, from peer: String?, timeoutSeconds: UInt64?) async throws(ControlError) -> ControlStream {
        let query = [("name", name), ("from", peer), ("timeout_seconds", timeoutSeconds.map { "\($0)" })]
        let path = ControlPath.path(["streams", "next", "content"], query: query)
        let socketPath = self.socketPath
        return try await Self.onThread { interruption throws(ControlError) in
            let connection = try interruption.watch(try StreamConnection(socketPath: socketPath))
            try connection.send("GET", path, chunks: false)
            let answer = try Self.success(connection)
            guard answer.contentLength == nil else { throw .malformed("the daemon's answer to GET \(path) is no stream") }
            return ControlStream(id: answer.fields["earshot-stream"], connection: connection)
        }
    }

    /// The answer's head; a problem is thrown.
    private static func success(_ connection: StreamConnection) throws(ControlError) -> StreamAnswer {
        let answer = try connection.receiveHead()
        guard (200..<300).contains(answer.status) else {
            throw Self.problem(try connection.receiveAll(of: answer), status: answer.status)
        }
        return answer
    }

    /// Has a thread wait, and not a task; where the task is cancelled meanwhile, the connection that the thread has watched ends.
    fileprivate static func onThread<Value: Sendable>(
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

/// Ends the connection that a thread waits on, when the task that it works for is cancelled.
private final class Interruption: Sendable {
    private struct State {
        var socket: StreamSocket?
        var isCancelled = false
    }

    private let state = Mutex(State())

    var isCancelled: Bool { self.state.withLock { $0.isCancelled } }

    /// The thread is about to wait on it.
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

/// A stream on its way from the daemon: read as fast as its reader wants, no faster.
///
/// Unchecked: one caller at a time has the connection, first the one that makes this, then ``move(to:)``, which ends it.
public struct ControlStream: @unchecked Sendable {
    /// Which one it is.
    public let id: String?
    private let connection: StreamConnection

    init(id: String?, connection: StreamConnection) {
        self.id = id
        self.connection = connection
    }

    /// Moves the stream to a descriptor, to its end; once. A task that is cancelled aborts the stream, and throws `cancelled`, once the
    /// descriptor has taken what was being written.
    /// - Throws: ``ControlError/output(reason:code:)`` where the descriptor takes no more; `lost`, `malformed`, `cancelled`.
    public func move(to output: CInt) async throws(ControlError) {
        let stream = self
        try await ControlClient.onThread { interruption throws(ControlError) in
            try interruption.watch(stream.connection).receiveBody(to: output)
        }
    }
}
