import AsyncHTTPClient

/// The daemon's event stream: one JSON object a line (design section 7). The reader is subscribed once it has one of these.
package struct ControlEvents: Sendable {
    private let lines: ControlLines
    private let socketPath: String

    init(response: HTTPClientResponse, client: ControlClient) {
        self.lines = ControlLines(response: response, client: client)
        self.socketPath = client.socketPath
    }

    /// Hands over each event in order until `body` returns false; an error of `body` ends it and is thrown as it is.
    ///
    /// The daemon's going away is an error: the stream has no end of its own. Read once.
    package func forEach(_ body: (ControlReply<ControlAPI.Event>) async throws -> Bool) async throws {
        let hasEnded = try await self.lines.forEach { line in try await body(try Self.event(line)) }
        if hasEnded { throw ControlError.lost(path: self.socketPath, reason: "it ended the stream of events") }
    }

    private static func event(_ line: [UInt8]) throws(ControlError) -> ControlReply<ControlAPI.Event> {
        do {
            return ControlReply(value: try ControlJSON.decode(ControlAPI.Event.self, from: line), json: line)
        } catch {
            throw .malformed("an event of the daemon: \(error)")
        }
    }
}
