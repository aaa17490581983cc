/// Plays worlds by their seeds, and shortens failing schedules.
package struct Simulator {
    /// The number of schedules of a world without devices, each played from the beginning, and the length of one in steps before the faults stop.
    package static let schedules = 4
    package static let steps = 300

    /// A schedule that violates an invariant.
    package struct Failure {
        package let seed: UInt64
        package let schedule: Schedule
        package let violation: Violation
    }

    package private(set) var counts = Counts()
    package private(set) var worlds = 0
    package private(set) var played = 0
    package private(set) var steps = 0
    private let nodes: Int?
    private let trace: Trace?

    package init(nodes: Int? = nil, trace: Trace? = nil) {
        self.nodes = nodes
        self.trace = trace
    }

    /// Plays the worlds of a seed: two to eight machines, sometimes sixteen, some of them hostile. Most worlds are small.
    package mutating func play(seed: UInt64) -> Failure? {
        self.worlds += 1
        var random = SplitMix64(seed: seed)
        let nodes = self.nodes ?? random.one(of: random.chance(4) ? [16] : [2, 2, 2, 3, 3, 3, 4, 4, 5, 6, 8])
        let hostile = nodes == 2 ? random.one(of: [0, 0, 1]) : random.below(min(3, nodes - 1))
        for number in 0...Self.schedules {
            var schedule = Schedule(seed: random.next(), honest: nodes - hostile, hostile: hostile)
            // A last schedule with LocalSend devices, of few machines.
            if number == Self.schedules {
                schedule = Schedule(
                    seed: schedule.seed, honest: random.one(of: [2, 2, 3]), hostile: random.below(2), devices: random.number(in: 1...4))
            }
            let (world, made) = World.make(schedule, steps: Self.steps, trace: self.trace)
            self.played += 1
            self.steps += world.steps
            self.counts.add(world.counts)
            if let violation = world.violation { return Failure(seed: seed, schedule: made, violation: violation) }
        }
        return nil
    }

    /// Replays a schedule. Returns the violation, if there is one.
    package mutating func replay(_ schedule: Schedule) -> Violation? {
        var world = World(schedule, trace: self.trace)
        world.play()
        self.played += 1
        self.steps += world.steps
        return world.violation
    }

    /// Returns a shorter schedule with the same failure: drops runs of actions, at first half of them, as long as the same invariant is
    /// violated.
    package static func shorten(_ failure: Failure) -> Schedule {
        func breaks(_ schedule: Schedule) -> Bool {
            var world = World(schedule)
            world.play()
            return world.violation?.invariant == failure.violation.invariant
        }
        var schedule = failure.schedule
        guard breaks(schedule) else { return schedule }
        var length = schedule.actions.count
        while length > 0 {
            var start = 0
            while start < schedule.actions.count {
                var shorter = schedule
                shorter.actions.removeSubrange(start..<min(start + length, shorter.actions.count))
                if breaks(shorter) { schedule = shorter } else { start += length }
            }
            length /= 2
        }
        var shorter = schedule
        shorter.end = min(schedule.end, (schedule.actions.last?.milliseconds ?? 0) + 100)
        if breaks(shorter) { schedule = shorter }
        return schedule
    }
}
