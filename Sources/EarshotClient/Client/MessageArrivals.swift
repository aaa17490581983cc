package import EarshotCoding
package import EarshotWire

/// Notifies a reader of messages of arrivals, until it is released.
package final class MessageArrivals: Sendable {
    package typealias Arrival = MessageArrival<ControlAPI.Message>

    /// The most pending arrivals. Further ones replace the oldest, but never the last notification of stored messages.
    private static let limit = 64

    /// The ids of the wanted peer and group: a name may become ambiguous, or mean another peer, while a reader waits.
    package let peer: PeerID?
    package let group: GroupID?
    /// Ends with ``end()``, or with an error if the daemon goes away.
    package let stream: AsyncThrowingStream<Arrival, any Error>
    private let continuation: AsyncThrowingStream<Arrival, any Error>.Continuation
    private let task: Task<Void, Never>

    /// Starts with the arrivals from now on, of a peer and a group in any form of naming them. With `onInterruption`, resumes after a
    /// restart of the daemon.
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

    /// Notifies the reader of an arrival. If there is no room, an unreliable message is dropped: a reader that has not looked at the stored
    /// messages yet would not be notified of them again.
    static func tell(_ arrival: Arrival, to continuation: AsyncThrowingStream<Arrival, any Error>.Continuation) {
        guard case .dropped(.stored) = continuation.yield(arrival) else { return }
        continuation.yield(.stored)
    }

    /// Ends the stream of arrivals.
    package func end() { self.continuation.finish() }

    deinit { self.task.cancel() }
}
