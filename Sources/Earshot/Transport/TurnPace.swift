import Synchronization

/// How long a unit of work (``EarshotWire/Frame/work``) takes on this machine just now, and so how many of them a turn has: the units are
/// only a guess at the time, which is what the other connections wait for.
package final class TurnPace: Sendable {
    private struct State {
        var time: Duration = .zero
        var work = 0
    }

    /// What is remembered, in units of work: what was done longer ago counts for ever less.
    private static let memory = 4096
    /// Units after which it is known how long one takes.
    private static let enough = 128

    private let state = Mutex(State())

    /// So much work was done, in so much time; work that the node has gone on with takes time and is none of its own.
    package func note(work: Int, took time: Duration) {
        self.state.withLock { state in
            state.work += work
            state.time += time
            guard state.work >= Self.memory else { return }
            state.work /= 2
            state.time /= 2
        }
    }

    /// How many units fill a turn of ``EarshotLimits/turnTime``: no more than `most`, and no fewer than ``EarshotLimits/shortestTurnWork``.
    package func size(upTo most: Int) -> Int {
        let (time, work) = self.state.withLock { ($0.time, $0.work) }
        guard work >= Self.enough, time * most > EarshotLimits.turnTime * work else { return most }
        return min(most, max(EarshotLimits.shortestTurnWork, Int(EarshotLimits.turnTime * work / time)))
    }
}
