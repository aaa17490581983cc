package import EarshotCoding

/// Has a reader of messages look when there may be more, for as long as it is held.
package final class MessageArrivals: Sendable {
    package typealias Arrival = MessageArrival<ControlAPI.Message>

    /// Arrivals that may wait; more are dropped, the oldest first.
    private static let limit = 64

    /// The peer and the group of which messages are wanted, by their ids: a name may come to mean another one, or two, while a reader waits.
    package let peer: String?
    package let group: String?
    /// Ends by ``end()``, or with an error where the daemon goes away.
    package let stream: AsyncThrowingStream<Arrival, any Error>
    private let continuation: AsyncThrowingStream<Arrival, any Error>.Continuation
    private let task: Task<Void, Never>

    /// Begins with what arrives from now on, of a peer and a group in any form of naming them.
    package init(_ client: ControlClient, from peer: String?, in group: String?) async throws {
        let events = try await client.events()
        let (peer, group) = (try await client.peerID(peer), try await client.groupID(group))
        let (stream, continuation) = AsyncThrowingStream.makeStream(of: Arrival.self, bufferingPolicy: .bufferingNewest(Self.limit))
        (self.peer, self.group) = (peer, group)
        (self.stream, self.continuation) = (stream, continuation)
        self.task = Task {
            do {
                for try await event in events {
                    if let message = event.value.message, message.mode == .unreliable {
                        let isWanted = (peer == nil || peer == message.sender.id) && (group == nil || group == message.group?.id)
                        if isWanted { continuation.yield(.unreliable(message)) }
                    } else if event.value.type == .messageReceived || event.value.type == .gap || !event.unreadable.isEmpty {
                        continuation.yield(.stored)
                    }
                }
            } catch {
                continuation.finish(throwing: error)
            }
        }
    }

    /// Nothing more is waited for.
    package func end() { self.continuation.finish() }

    deinit { self.task.cancel() }
}
