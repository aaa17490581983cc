import AsyncHTTPClient
import EarshotCoding

/// The daemon's event stream: one JSON object a line (`GET /v1/events` in the API's document). The reader is subscribed once it has one of
/// these.
public struct ControlEvents: Sendable {
    private let lines: ControlLines
    private let client: ControlClient

    init(response: HTTPClientResponse, client: ControlClient) {
        self.lines = ControlLines(response: response, client: client)
        self.client = client
    }

    /// Hands over each event in order until `body` returns false; an error of `body` ends it and is thrown as it is.
    ///
    /// An event that cannot be read ends nothing: it is handed over as one of an unknown type. The daemon's going away is an error: the
    /// stream has no end of its own. Read once.
    public func forEach(_ body: (ControlReply<ControlAPI.Event>) async throws -> Bool) async throws {
        let hasEnded = try await self.lines.forEach { line in try await body(self.event(line)) }
        if hasEnded { throw ControlError.lost(path: self.client.socketPath, reason: "it ended the stream of events") }
    }

    private func event(_ line: [UInt8]) -> ControlReply<ControlAPI.Event> {
        let reply: ControlReply<ControlAPI.Event>
        do {
            let (event, unreadable) = try ControlJSON.read(ControlAPI.Event.self, from: line)
            reply = ControlReply(value: event, json: line, unreadable: unreadable)
        } catch {
            reply = ControlReply(value: .unreadable, json: line, unreadable: [error.description])
        }
        self.client.tell(reply.unreadable, of: "an event")
        return reply
    }
}
