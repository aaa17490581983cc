package import EarshotCoding

/// Has a reader of messages look when there may be more, for as long as it is held.
package final class MessageArrivals: Sendable {
    package typealias Arrival = MessageArrival<ControlAPI.Message>

    /// Arrivals that may wait; more are dropped, the oldest first, but never the last look at what is stored.
    private static let limit = 64

    /// The peer and the group of which messages are wanted, by their ids: a name may come to mean another one, or two, while a reader waits.
    package let peer: String?
    package let group: String?
    /// Ends by ``end()``, or with an error where the daemon goes away.
    package let stream: AsyncThrowingStream<Arrival, any Error>
    private let continuation: AsyncThrowingStream<Arrival, any Error>.Continuation
    private let task: Task<Void, Never>

    /// Begins with what arrives from now on, of a peer and a group in any form of naming them. With `onInterruption` it goes on when the
    /// daemon is restarted.
    package init(
        _ client: ControlClient, from peer: String?, in group: String?, onInterruption: (@Sendable (ControlInterruption) -> Void)? = nil
    ) async throws {
        let resumption = onInterruption.map { ControlResumption(patience: nil, onInterruption: $0) }
        let events = try await client.events(since: ControlEventPosition(epoch: nil, sequence: nil), resumption: resumption)
        let (peer, group) = (try await client.peerID(peer), try await client.groupID(group))
        let (stream, continuation) = AsyncThrowingStream.makeStream(of: Arrival.self, bufferingPolicy: .bufferingNewest(Self.limit))
        (self.peer, self.group) = (peer, group)
        (self.stream, self.continuation) = (stream, continuation)
        self.task = Task {
            do {
                for try await event in events {
                    if let message = event.value.message, message.mode == .unreliable {
                        let isWanted = (peer == nil || peer == message.sender.id) && (group == nil || group == message.group?.id)
                        if isWanted { MessageArrivals.tell(.unreliable(message), to: continuation) }
                    } else if event.value.type == .messageReceived || event.value.type == .gap || !event.unreadable.isEmpty {
                        MessageArrivals.tell(.stored, to: continuation)
                    }
                }
            } catch {
                continuation.finish(throwing: error)
            }
        }
    }

    /// Tells the reader of an arrival. Where there is no room for it, something unreliable gives way: a reader that has not looked yet at what is
    /// stored would not hear of it again.
    static func tell(_ arrival: Arrival, to continuation: AsyncThrowingStream<Arrival, any Error>.Continuation) {
        guard case .dropped(.stored) = continuation.yield(arrival) else { return }
        continuation.yield(.stored)
    }

    /// Nothing more is waited for.
    package func end() { self.continuation.finish() }

    deinit { self.task.cancel() }
}
