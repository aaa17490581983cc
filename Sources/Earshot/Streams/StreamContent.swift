package import EarshotSafety
public import NIOCore

/// The bytes of a stream that was accepted here, for one reader. The reader must end it with ``finish()`` or ``abandon()``.
public struct StreamContent: Sendable {
    /// The stream at the time of acceptance.
    public let stream: ByteStream
    private let flow: IncomingFlow
    private let node: Node

    init(stream: ByteStream, flow: IncomingFlow, node: Node) {
        self.stream = stream
        self.flow = flow
        self.node = node
    }

    /// Waits for the next bytes and returns them; `nil` at the end. The call also marks the previous bytes as taken, so that the sender
    /// may continue.
    /// - Throws: `cancelled` if the sender aborted the stream, `unavailable` if the connection was lost.
    public func next() async throws(EarshotError) -> ByteBuffer? { try await self.flow.next() }

    /// The next step for a reader to which the kernel can move bytes.
    package enum Step: Sendable {
        case bytes(ByteBuffer)
        /// Bytes to be moved by ``move(_:)``.
        case connection(DataConnection)
        case end
    }

    /// Lets the bytes of data connections be moved to `outlet` from now on. Use ``step()`` instead of ``next()`` afterwards.
    package func use(_ outlet: StreamOutlet) { self.flow.use(outlet) }

    /// Returns the next step; otherwise as ``next()``.
    package func step() async throws(EarshotError) -> Step { try await self.flow.step() }

    /// Moves bytes from the connection to the outlet until the connection ends. Earlier bytes for the reader must already have been sent.
    package func move(_ connection: DataConnection) async {
        // If threads have run out, nothing is lost: the receiver requests the remaining bytes over the control connection.
        let error = try? await ThreadExecutor.blocking("earshot-stream") { await StreamForwarder.forward(connection, self.flow) }
        self.node.streamMoved(self.stream.id, error ?? nil)
    }

    /// Writes the whole stream to a descriptor. If the task is cancelled, the stream is aborted.
    /// - Throws: as ``next()``; `no-space`, `storage`, `unavailable` if threads or descriptors have run out.
    package func move(to output: PassedDescriptor) async throws {
        let (id, flow, node) = (self.stream.id, self.flow, self.node)
        try await withTaskCancellationHandler {
            try await ThreadExecutor.blocking("earshot-stream") {
                guard let pipe = try? BytePipe() else { throw EarshotError(.unavailable, "too many descriptors are open") }
                let outlet = StreamOutlet(output)
                flow.use(outlet)
                while true {
                    switch try await flow.step() {
                    case .bytes(let piece):
                        do throws(EarshotError) {
                            try outlet.send(piece, through: pipe)
                        } catch {
                            node.streamMoved(id, error)
                            throw error
                        }
                    case .connection(let connection): node.streamMoved(id, await StreamForwarder.forward(connection, flow))
                    case .end: return
                    }
                }
            }
        } onCancel: {
            output.interrupt()
            node.abandonStream(id)
        }
    }

    /// Reports to the sender that everything was taken. Call this after ``next()`` has returned `nil`.
    /// - Throws: the error with which the stream failed meanwhile.
    public func finish() async throws(EarshotError) { try await self.node.finishStream(self.stream.id) }

    /// Aborts the stream if it is not over.
    public func abandon() { self.node.abandonStream(self.stream.id) }
}
