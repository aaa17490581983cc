/// What becomes of one message of a call: refused before it was sent, or its recipients' outcomes.
package typealias MessageOutcome = Result<SentMessage, EarshotError>

/// The same, of the message that stands there in its call.
typealias KnownOutcome = (index: Int, outcome: MessageOutcome)

/// Calls that send messages, each of which is answered once what becomes of all of its messages is known.
struct SendingBatches: Sendable {
    private struct Batch: Sendable {
        var outcomes: [MessageOutcome?]
        /// Messages of which nothing is known yet.
        var open: Int

        /// Whether the last was among them.
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

    /// How many calls wait.
    var count: Int { self.batches.count }

    mutating func begin(_ call: CallID, count: Int) {
        self.batches[call] = Batch(outcomes: Array(repeating: nil, count: count), open: count)
    }

    /// What became of messages of a call: the first word of each counts. Gives what is to be answered where the last was among them.
    mutating func settle(_ call: CallID, _ known: some Collection<KnownOutcome>) -> [MessageOutcome]? {
        guard self.batches[call]?.settle(known) == true else { return nil }
        return self.batches.removeValue(forKey: call)?.outcomes.compactMap(\.self)
    }

    /// Nothing more becomes known: what is open has failed. In the order of the calls.
    mutating func dismiss(_ error: EarshotError) -> [(CallID, [MessageOutcome])] {
        defer { self.batches = [:] }
        return self.batches.keys.sorted { $0.number < $1.number }  // order does not show: no two have the same number
            .map { call in (call, self.batches[call]?.outcomes.map { $0 ?? .failure(error) } ?? []) }
    }
}
