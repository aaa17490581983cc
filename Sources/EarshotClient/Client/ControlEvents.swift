import AsyncHTTPClient
import EarshotCoding
import NIOHTTP1

/// The daemon's event stream: one JSON object per line (`GET /v1/events` in the API's document). The reader is subscribed from the moment
/// it has this value.
///
/// ```swift
/// for try await event in try await client.events() { print(event.type) }
/// ```
///
/// An unreadable event does not end the stream: it is returned as an event of unknown type, with its unreadable parts. Missed events are
/// reported as an event of type `gap`. The stream never ends normally. If the daemon goes away, it throws, unless the reader asked to
/// resume (``ControlClient/events(since:epoch:patience:onInterruption:)``). If the reader's task is cancelled, it throws
/// ``ControlError/cancelled``. Only one reader may read it, once.
public struct ControlEvents: AsyncSequence, Sendable {
    private let lines: ControlLines
    private let client: ControlClient
    /// The reader's position: the requested one, otherwise the position at which the answer begins, according to the daemon.
    private let position: ControlEventPosition
    /// The run of the daemon that answered.
    fileprivate let epoch: String?
    private let resumption: ControlResumption?

    init(response: HTTPClientResponse, since position: ControlEventPosition, resumption: ControlResumption?, client: ControlClient) {
        let beginning = ControlEventPosition(header: response.headers.first(name: ControlAPI.eventPositionHeader))
        self.lines = ControlLines(response: response, client: client)
        self.client = client
        self.epoch = beginning?.epoch
        self.position = ControlEventPosition(
            epoch: position.epoch ?? beginning?.epoch, sequence: position.sequence ?? (position.epoch == nil ? beginning?.sequence : nil))
        self.resumption = resumption
    }

    /// Returns the reader.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(
            lines: self.lines.makeAsyncIterator(), client: self.client, position: self.position, epoch: self.epoch,
            resumption: self.resumption)
    }

    /// The position of the reader.
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate var lines: ControlLines.AsyncIterator
        fileprivate let client: ControlClient
        fileprivate var position: ControlEventPosition
        fileprivate var epoch: String?
        fileprivate let resumption: ControlResumption?
        private var backOff = BackOff()
        /// Whether the reader has been told of the current interruption and has had no event since.
        private var isInterrupted = false

        fileprivate init(
            lines: ControlLines.AsyncIterator, client: ControlClient, position: ControlEventPosition, epoch: String?,
            resumption: ControlResumption?
        ) {
            self.lines = lines
            self.client = client
            self.position = position
            self.epoch = epoch
            self.resumption = resumption
        }

        /// Waits for the next event; never `nil`.
        /// - Throws: ``ControlError``.
        public mutating func next() async throws -> ControlReply<ControlAPI.Event>? {
            while true {
                do {
                    if let line = try await self.lines.next() { return self.event(line) }
                    let lost = ControlError.lost(path: self.client.socketPath, reason: "it ended the stream of events")
                    try await self.resume(after: lost, isOrderly: true)
                } catch let error as ControlError where self.resumption != nil && error.isOutage {
                    try await self.resume(after: error, isOrderly: false)
                }
            }
        }

        private mutating func event(_ line: [UInt8]) -> ControlReply<ControlAPI.Event> {
            let reply: ControlReply<ControlAPI.Event>
            do {
                let (event, unreadable) = try ControlJSON.read(ControlAPI.Event.self, from: line)
                reply = ControlReply(value: event, json: line, unreadable: unreadable)
                self.position = ControlEventPosition(epoch: event.epoch, sequence: event.seq)
            } catch {
                reply = ControlReply(value: .unreadable, json: line, unreadable: [error.description])
            }
            (self.isInterrupted, self.backOff) = (false, BackOff())
            self.client.tell(reply.unreadable, of: "an event")
            return reply
        }

        /// Continues in another answer, after the last event that was read.
        ///
        /// The daemon ends an answer in good order only when it stops. If an answer breaks off and the same run of the daemon answers
        /// again, the daemon has dropped the reader.
        private mutating func resume(after error: ControlError, isOrderly: Bool) async throws(ControlError) {
            guard let resumption = self.resumption else { throw error }
            var error = error
            if isOrderly { self.tell(.daemonLeft) }
            let start = ContinuousClock.now
            while true {
                if self.isInterrupted { try await self.pause() }
                do throws(ControlError) {
                    let events = try await self.client.events(since: self.position, resumption: nil)
                    self.tell(events.epoch == self.epoch && self.epoch != nil ? .readerTooSlow : .daemonLeft)
                    (self.lines, self.epoch) = (events.lines.makeAsyncIterator(), events.epoch)
                    return
                } catch let failure {
                    guard failure.isOutage else { throw failure }
                    error = failure
                }
                self.tell(.daemonLeft)
                if let patience = resumption.patience, ContinuousClock.now - start >= patience { throw error }
            }
        }

        private mutating func tell(_ interruption: ControlInterruption) {
            guard !self.isInterrupted else { return }
            self.isInterrupted = true
            self.resumption?.onInterruption(interruption)
        }

        private mutating func pause() async throws(ControlError) {
            do {
                try await Task.sleep(for: self.backOff.step())
            } catch {
                throw .cancelled
            }
        }
    }
}
