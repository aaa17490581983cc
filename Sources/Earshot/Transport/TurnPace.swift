import Synchronization

/// The measured time per unit of work (``EarshotWire/Frame/work``), which determines the number of units in a turn. Units only estimate
/// the time, but the time is what other connections wait for.
package final class TurnPace: Sendable {
    private struct State {
        var time: Duration = .zero
        var work = 0
    }

    /// The amount of work that is remembered, in units. Older measurements have less and less weight.
    private static let memory = 4096
    /// The number of units after which the measurement is used.
    private static let enough = 128

    private let state = Mutex(State())

    /// Records work and its time. Work that the node continues later adds time without units.
    package func note(work: Int, took time: Duration) {
        self.state.withLock { state in
            state.work += work
            state.time += time
            guard state.work >= Self.memory else { return }
            state.work /= 2
            state.time /= 2
        }
    }

    /// Returns the number of units in a turn of ``EarshotLimits/turnTime``: at most `most`, and at least
    /// ``EarshotLimits/shortestTurnWork``.
    package func size(upTo most: Int) -> Int {
        let (time, work) = self.state.withLock { ($0.time, $0.work) }
        guard work >= Self.enough, time * most > EarshotLimits.turnTime * work else { return most }
        return min(most, max(EarshotLimits.shortestTurnWork, Int(EarshotLimits.turnTime * work / time)))
    }
}
