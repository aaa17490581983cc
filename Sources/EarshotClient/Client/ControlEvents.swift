import AsyncHTTPClient
import EarshotCoding

/// The daemon's event stream: one JSON object a line (`GET /v1/events` in the API's document). The reader is subscribed once it has one of
/// these.
///
/// ```swift
/// for try await event in try await client.events() { print(event.value.type) }
/// ```
///
/// An event that cannot be read ends nothing: it comes as one of an unknown type, with what could not be read. Events that were missed are
/// told as one of the type `gap`. The stream has no end of its own: the daemon's going away is an error, and so is the cancellation of the
/// reader's task (``ControlError/cancelled``). Read once, by one reader.
public struct ControlEvents: AsyncSequence, Sendable {
    private let lines: ControlLines
    private let client: ControlClient

    init(response: HTTPClientResponse, client: ControlClient) {
        self.lines = ControlLines(response: response, client: client)
        self.client = client
    }

    /// The reader.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(self.lines, self.client) }

    /// How far the reader is.
    public struct AsyncIterator: AsyncIteratorProtocol {
        private var lines: ControlLines.AsyncIterator
        private let client: ControlClient

        fileprivate init(_ lines: ControlLines, _ client: ControlClient) {
            self.lines = lines.makeAsyncIterator()
            self.client = client
        }

        /// Waits for the next event; never `nil`.
        /// - Throws: ``ControlError``.
        public mutating func next() async throws -> ControlReply<ControlAPI.Event>? {
            guard let line = try await self.lines.next() else {
                throw ControlError.lost(path: self.client.socketPath, reason: "it ended the stream of events")
            }
            return self.event(line)
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
}
