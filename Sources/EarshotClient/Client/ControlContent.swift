import AsyncHTTPClient
public import NIOCore
import NIOHTTP1

/// The content of a resource, received from the daemon in pieces, at the reader's pace.
///
/// Only one reader may read it, once. If the reader's task is cancelled, the reader throws ``ControlError/cancelled``.
public struct ControlContent: AsyncSequence, Sendable {
    /// The size in bytes, as the daemon announced it.
    public let length: UInt64?
    /// A file's attributes; `nil` for a directory, and from an older daemon.
    public let attributes: ControlAPI.FileAttributes?
    private let response: HTTPClientResponse
    private let client: ControlClient

    init(response: HTTPClientResponse, client: ControlClient) {
        self.length = response.headers.first(name: "Content-Length").flatMap { UInt64($0) }
        self.attributes = response.headers.first(name: "Earshot-Modified").flatMap { Int64($0) }.map { modified in
            ControlAPI.FileAttributes(
                modified: modified, isExecutable: response.headers.first(name: "Earshot-Executable") == "true",
                hasHoles: response.headers.first(name: "Earshot-Holes") == "true")
        }
        self.response = response
        self.client = client
    }

    /// Returns the reader.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(self.response, self.client) }

    /// The position of the reader.
    public struct AsyncIterator: AsyncIteratorProtocol {
        private var pieces: HTTPClientResponse.Body.AsyncIterator
        private let client: ControlClient

        init(_ response: HTTPClientResponse, _ client: ControlClient) {
            self.pieces = response.body.makeAsyncIterator()
            self.client = client
        }

        /// Waits for the next piece; `nil` at the end of the content.
        /// - Throws: ``ControlError``.
        public mutating func next() async throws -> ByteBuffer? {
            do {
                return try await self.pieces.next(isolation: #isolation)
            } catch {
                throw self.client.failure(error, answered: true)
            }
        }
    }
}
