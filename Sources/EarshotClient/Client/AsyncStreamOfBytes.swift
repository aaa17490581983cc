public import NIOCore

/// Bytes at the daemon's pace: the next piece is requested when the last one has been accepted.
public struct AsyncStreamOfBytes: AsyncSequence, Sendable {
    private let next: @Sendable () async throws -> ByteBuffer?

    /// Takes the pieces from a function, which returns `nil` at the end and is called from one task at a time.
    public init(_ next: @escaping @Sendable () async throws -> ByteBuffer?) {
        self.next = next
    }

    /// The reader, which calls the function.
    public struct AsyncIterator: AsyncIteratorProtocol {
        let read: @Sendable () async throws -> ByteBuffer?

        /// Returns the next piece.
        public mutating func next() async throws -> ByteBuffer? { try await self.read() }
    }

    /// Returns the reader; the pieces can be read only once.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(read: self.next) }
}
