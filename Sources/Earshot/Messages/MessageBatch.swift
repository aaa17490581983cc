package import EarshotCore
import EarshotWaiting

/// Messages that were submitted together, and their outcomes. The node sets the outcomes, and the caller awaits them.
///
/// One wait covers all messages, instead of a task and a continuation for each.
package final class MessageBatch: Sendable {
    /// The outcome of one message: an error before it was sent, or the outcomes of its recipients.
    package typealias Outcome = Result<SentMessage, EarshotError>

    private let settled = OneShot<[Outcome]>()

    init() {}

    /// Sets the outcomes of all messages.
    func settle(_ outcomes: [Outcome]) { self.settled.settle(outcomes) }

    /// Waits until the outcomes of all messages are decided, and returns them in the order of submission.
    package func outcomes() async -> [Outcome] { await self.settled.value() }
}
