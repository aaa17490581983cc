public import NIOCore

/// The bytes of a stream that was accepted here, for one reader, which has to bring it to an end: ``finish()`` or ``abandon()``.
public struct StreamContent: Sendable {
    /// As it was when it was accepted.
    public let stream: ByteStream
    private let flow: IncomingFlow
    private let node: Node

    init(stream: ByteStream, flow: IncomingFlow, node: Node) {
        self.stream = stream
        self.flow = flow
        self.node = node
    }

    /// The next bytes, as soon as there are some; `nil` at the end. Asking for them says that those before were taken, and lets the
    /// sender go on.
    /// - Throws: `cancelled` where the sender aborted it, `unavailable` where the connection was lost.
    public func next() async throws(EarshotError) -> ByteBuffer? { try await self.flow.next() }

    /// What comes next for a reader to which the kernel can move bytes.
    package enum Step: Sendable {
        case bytes(ByteBuffer)
        /// Bytes that ``move(_:)`` brings.
        case connection(DataConnection)
        case end
    }

    /// From now on the bytes of data connections may be moved to `outlet`: use ``step()`` in place of ``next()``.
    package func use(_ outlet: StreamOutlet) { self.flow.use(outlet) }

    /// As ``next()``.
    package func step() async throws(EarshotError) -> Step { try await self.flow.step() }

    /// Moves what comes over the connection, until nothing comes over it any more. What was written to the reader before must have gone out.
    package func move(_ connection: DataConnection) async {
        let error = await StreamForwarder.forward(connection, self.flow)
        self.node.streamMoved(self.stream.id, error)
    }

    /// Everything was taken: the sender is told so. After ``next()`` has given `nil`.
    /// - Throws: what the stream failed with meanwhile.
    public func finish() async throws(EarshotError) { try await self.node.finishStream(self.stream.id) }

    /// The rest is not wanted: the stream is aborted. Without effect on one that is over.
    public func abandon() { self.node.abandonStream(self.stream.id) }
}
