import EarshotWaiting
import Synchronization

/// A request to the daemon whose reply may still be pending when a signal arrives: the interruption waits for the reply, and then undoes
/// its effect.
///
/// The daemon acts as soon as it has the request. Waiting for the reply makes sure that nothing is left behind.
final class PendingReply<Value: Sendable>: Sendable {
    private let reply = Mutex<OneShot<Value?>?>(nil)

    /// Sends the request and remembers the reply.
    func ask(_ question: () async throws -> Value) async throws -> Value {
        let reply = OneShot<Value?>()
        self.reply.withLock { $0 = reply }
        do {
            let value = try await question()
            reply.settle(value)
            return value
        } catch {
            reply.settle(nil)
            throw error
        }
    }

    /// Waits for a pending reply and returns it; `nil` if nothing was requested or the request failed.
    func answer() async -> Value? { await self.reply.withLock { $0 }?.value() ?? nil }
}
