/// What becomes of one message of a call: refused before it was sent, or its recipients' outcomes.
package typealias MessageOutcome = Result<SentMessage, EarshotError>

/// Calls that send messages, each of which is answered once what becomes of all of its messages is known.
struct SendingBatches: Sendable {
    private struct Batch: Sendable {
        var outcomes: [MessageOutcome?]
        /// Messages of which nothing is known yet.
        var open: Int

        /// Whether that was the last.
        mutating func settle(_ index: Int, _ outcome: MessageOutcome) -> Bool {
            guard self.outcomes[index] == nil else { return false }
            self.outcomes[index] = outcome
            self.open -= 1
            return self.open == 0
        }
    }

    private var batches: [CallID: Batch] = [:]

    /// How many calls wait.
    var count: Int { self.batches.count }

    mutating func begin(_ call: CallID, count: Int) {
        self.batches[call] = Batch(outcomes: Array(repeating: nil, count: count), open: count)
    }

    /// What became of one message: the first word counts. Gives what is to be answered where it was the last.
    mutating func settle(_ place: MessagePlace, _ outcome: MessageOutcome) -> [MessageOutcome]? {
        guard self.batches[place.call]?.settle(place.index, outcome) == true else { return nil }
        return self.batches.removeValue(forKey: place.call)?.outcomes.compactMap(\.self)
    }

    /// Nothing more becomes known: what is open has failed. In the order of the calls.
    mutating func dismiss(_ error: EarshotError) -> [(CallID, [MessageOutcome])] {
        defer { self.batches = [:] }
        return self.batches.keys.sorted { $0.number < $1.number }  // order does not show: no two have the same number
            .map { call in (call, self.batches[call]?.outcomes.map { $0 ?? .failure(error) } ?? []) }
    }
}
