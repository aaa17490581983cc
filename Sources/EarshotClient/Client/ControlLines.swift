import AsyncHTTPClient
import NIOCore

/// An answer of one JSON document a line, as it comes.
public struct ControlLines: Sendable {
    /// The longest line, in bytes: a message of 1 MiB as base64 and more than its rest fit.
    public static let lineLimit = 8 * 1024 * 1024

    private let response: HTTPClientResponse
    private let client: ControlClient

    init(response: HTTPClientResponse, client: ControlClient) {
        self.response = response
        self.client = client
    }

    /// Hands over each line that is not empty, in order, until `body` returns false or the answer ends; an error of `body` ends it and is
    /// thrown as it is. Whether the answer ended. Read once.
    public func forEach(_ body: ([UInt8]) async throws -> Bool) async throws -> Bool {
        var pieces = self.response.body.makeAsyncIterator()
        var lines = LineBuffer(limit: Self.lineLimit)
        while true {
            while let line = try Self.nextLine(of: &lines) {
                guard try await body(line) else { return false }
            }
            let piece: ByteBuffer?
            do {
                piece = try await pieces.next()
            } catch {
                throw self.client.failure(error, answered: true)
            }
            guard let piece else { return true }
            lines.append(piece)
        }
    }

    /// The next line that is not empty.
    private static func nextLine(of lines: inout LineBuffer) throws(ControlError) -> [UInt8]? {
        do {
            while let line = try lines.next() {
                if line.readableBytes > 0 { return Array(line.readableBytesView) }
            }
            return nil
        } catch {
            throw .malformed("a line of the daemon's is longer than \(Self.lineLimit) bytes")
        }
    }
}
