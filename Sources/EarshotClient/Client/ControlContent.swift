import AsyncHTTPClient
public import NIOCore
import NIOHTTP1

/// The content of a resource on its way from the daemon: read as fast as the reader wants, no faster.
public struct ControlContent: Sendable {
    /// Bytes, as the daemon announced it.
    public let length: UInt64?
    private let response: HTTPClientResponse
    private let client: ControlClient

    init(response: HTTPClientResponse, client: ControlClient) {
        self.length = response.headers.first(name: "Content-Length").flatMap { UInt64($0) }
        self.response = response
        self.client = client
    }

    /// Hands over each piece in order; an error of `body` ends the download and is thrown as it is.
    public func forEach(_ body: (ByteBuffer) async throws -> Void) async throws {
        var pieces = self.response.body.makeAsyncIterator()
        while true {
            let piece: ByteBuffer?
            do {
                piece = try await pieces.next()
            } catch {
                throw self.client.failure(error, answered: true)
            }
            guard let piece else { return }
            try await body(piece)
        }
    }
}
