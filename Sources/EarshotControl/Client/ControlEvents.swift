import AsyncHTTPClient
import NIOCore

/// The daemon's event stream: one JSON object a line (design section 7). The reader is subscribed once it has one of these.
package struct ControlEvents: Sendable {
    /// The longest line, in bytes: a message of 1 MiB as base64 and more than its rest fit.
    package static let lineLimit = 8 * 1024 * 1024

    private let response: HTTPClientResponse
    private let client: ControlClient

    init(response: HTTPClientResponse, client: ControlClient) {
        self.response = response
        self.client = client
    }

    /// Hands over each event in order until `body` returns false; an error of `body` ends it and is thrown as it is.
    ///
    /// The daemon's going away is an error: the stream has no end of its own. Read once.
    package func forEach(_ body: (ControlReply<ControlAPI.Event>) async throws -> Bool) async throws {
        var pieces = self.response.body.makeAsyncIterator()
        var lines = LineBuffer(limit: Self.lineLimit)
        while true {
            while let line = try Self.nextLine(of: &lines) {
                guard try await body(try Self.event(line)) else { return }
            }
            let piece: ByteBuffer?
            do {
                piece = try await pieces.next()
            } catch {
                throw self.client.failure(error, answered: true)
            }
            guard let piece else {
                throw ControlError.lost(path: self.client.socketPath, reason: "it ended the stream of events")
            }
            lines.append(piece.readableBytesView)
        }
    }

    /// The next line that is not empty.
    private static func nextLine(of lines: inout LineBuffer) throws(ControlError) -> [UInt8]? {
        do {
            while let line = try lines.next() {
                if !line.isEmpty { return line }
            }
            return nil
        } catch {
            throw .malformed("an event of the daemon is longer than \(Self.lineLimit) bytes")
        }
    }

    private static func event(_ line: [UInt8]) throws(ControlError) -> ControlReply<ControlAPI.Event> {
        do {
            return ControlReply(value: try ControlJSON.decode(ControlAPI.Event.self, from: line), json: line)
        } catch {
            throw .malformed("an event of the daemon: \(error)")
        }
    }
}
