/// The outcome of one message of a call: an error before it was sent, or its recipients' outcomes.
package typealias MessageOutcome = Result<SentMessage, EarshotError>

/// The outcome of the message at an index of its call.
typealias KnownOutcome = (index: Int, outcome: MessageOutcome)

/// The calls that send messages. Each is answered when the outcomes of all its messages are known.
struct SendingBatches: Sendable {
    private struct Batch: Sendable {
        var outcomes: [MessageOutcome?]
        /// The number of messages without an outcome.
        var open: Int

        /// Records outcomes. Returns whether they were the last ones.
        mutating func settle(_ known: some Collection<KnownOutcome>) -> Bool {
            let before = self.open
            for (index, outcome) in known where self.outcomes[index] == nil {
                self.outcomes[index] = outcome
                self.open -= 1
            }
            return self.open == 0 && before > 0
        }
    }

    private var batches: [CallID: Batch] = [:]

    /// The number of calls that wait.
    var count: Int { self.batches.count }

    mutating func begin(_ call: CallID, count: Int) {
        self.batches[call] = Batch(outcomes: Array(repeating: nil, count: count), open: count)
    }

    /// Records outcomes of a call's messages. The first outcome of each message counts. Returns all outcomes if the last one was among
    /// them.
    mutating func settle(_ call: CallID, _ known: some Collection<KnownOutcome>) -> [MessageOutcome]? {
        guard self.batches[call]?.settle(known) == true else { return nil }
        return self.batches.removeValue(forKey: call)?.outcomes.compactMap(\.self)
    }

    /// Fails every message without an outcome. Returns the outcomes of all calls, in the order of the calls.
    mutating func dismiss(_ error: EarshotError) -> [(CallID, [MessageOutcome])] {
        defer { self.batches = [:] }
        return self.batches.keys.sorted { $0.number < $1.number }  // order does not show: no two have the same number
            .map { call in (call, self.batches[call]?.outcomes.map { $0 ?? .failure(error) } ?? []) }
    }
}
