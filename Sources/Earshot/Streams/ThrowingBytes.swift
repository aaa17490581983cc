import NIOCore

/// A caller's bytes as a sequence that can throw, which an `AsyncStream` cannot.
struct ThrowingBytes<Base: AsyncSequence & Sendable>: AsyncSequence, Sendable where Base.Element == ByteBuffer {
    private let base: Base

    init(_ base: Base) { self.base = base }

    func makeAsyncIterator() -> Iterator { Iterator(base: self.base.makeAsyncIterator()) }

    struct Iterator: AsyncIteratorProtocol {
        fileprivate var base: Base.AsyncIterator

        mutating func next(isolation actor: isolated (any Actor)?) async throws(any Error) -> ByteBuffer? {
            try await self.base.next(isolation: actor)
        }
    }
}
