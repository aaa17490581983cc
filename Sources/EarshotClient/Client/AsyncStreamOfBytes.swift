public import NIOCore

/// Bytes that are read as the daemon takes them: the next piece is asked for when the last one was accepted.
public struct AsyncStreamOfBytes: AsyncSequence, Sendable {
    private let next: @Sendable () async throws -> ByteBuffer?

    /// Pieces from a function that returns `nil` at the end; called from one task at a time.
    public init(_ next: @escaping @Sendable () async throws -> ByteBuffer?) {
        self.next = next
    }

    /// Reads from the function.
    public struct AsyncIterator: AsyncIteratorProtocol {
        let read: @Sendable () async throws -> ByteBuffer?

        /// The next piece.
        public mutating func next() async throws -> ByteBuffer? { try await self.read() }
    }

    /// The pieces; may be read once.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(read: self.next) }
}
