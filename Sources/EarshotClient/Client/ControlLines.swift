import AsyncHTTPClient
import NIOCore

/// An answer with one JSON document per line: the non-empty lines, in order, until the answer ends.
///
/// Only one reader may read it, once. If the reader's task is cancelled, the reader throws ``ControlError/cancelled``.
public struct ControlLines: AsyncSequence, Sendable {
    /// The longest line, in bytes: enough for a message of 1 MiB as base64 with its other fields.
    public static let lineLimit = 8 * 1024 * 1024

    private let response: HTTPClientResponse
    private let client: ControlClient

    init(response: HTTPClientResponse, client: ControlClient) {
        self.response = response
        self.client = client
    }

    /// Returns the reader.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(self.response, self.client) }

    /// The position of the reader.
    public struct AsyncIterator: AsyncIteratorProtocol {
        private var pieces: ControlContent.AsyncIterator
        private var lines = LineBuffer(limit: ControlLines.lineLimit)

        fileprivate init(_ response: HTTPClientResponse, _ client: ControlClient) {
            self.pieces = ControlContent.AsyncIterator(response, client)
        }

        /// Waits for the next line; `nil` at the end of the answer.
        /// - Throws: ``ControlError``.
        public mutating func next() async throws -> [UInt8]? {
            while true {
                if let line = try self.nextLine() { return line }
                guard let piece = try await self.pieces.next() else { return nil }
                self.lines.append(piece)
            }
        }

        /// Returns the next non-empty line that has been received.
        private mutating func nextLine() throws(ControlError) -> [UInt8]? {
            do {
                while let line = try self.lines.next() {
                    if line.readableBytes > 0 { return Array(line.readableBytesView) }
                }
                return nil
            } catch {
                throw .malformed("a line of the daemon's is longer than \(ControlLines.lineLimit) bytes")
            }
        }
    }
}
