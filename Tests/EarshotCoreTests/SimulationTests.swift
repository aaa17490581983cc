import FoundationEssentials
import Simulation
import Testing

/// Replays schedules that failed before, and checks that the same schedule gives the same run.
@Suite struct SimulationTests {
    private static var failures: [String] {
        get throws {
            let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../Simulation/Failures").path
            let names = try FileManager.default.contentsOfDirectory(atPath: folder).filter { $0.hasSuffix(".txt") }
            return names.sorted().map { "\(folder)/\($0)" }
        }
    }

    @Test func whatHasFailedBeforeHolds() throws {
        let failures = try Self.failures
        #expect(!failures.isEmpty, "the past failures are gone")
        for path in failures {
            let schedule = try Schedule(text: try String(contentsOfFile: path, encoding: .utf8))
            var simulator = Simulator()
            #expect(simulator.replay(schedule) == nil, "\(path)")
        }
    }

    private func lines(_ schedule: Schedule) -> [String] {
        let lines = Lines()
        var simulator = Simulator(trace: Trace { lines.all.append($0) })
        _ = simulator.replay(schedule)
        return lines.all
    }

    private final class Lines {
        var all: [String] = []
    }

    @Test(arguments: [1, 2, 3] as [UInt64], [0, 2])
    func theSameScheduleIsTheSameRun(seed: UInt64, devices: Int) throws {
        let (world, made) = World.make(Schedule(seed: seed, honest: 3, hostile: 1, devices: devices), steps: 300)
        #expect(world.violation == nil)
        let lines = self.lines(made)
        #expect(lines.count > 300)
        // Also in the text form.
        #expect(try lines == self.lines(Schedule(text: made.text)))
        #expect(try Schedule(text: made.text) == made)
    }

    @Test(arguments: [
        "", "seed 1\nhonest 2\nhostile 0\n", "seed 1\nhonest 2\nhostile 15\nend 5\n",
        "seed 1\nhonest 2\nhostile 0\ndevices 17\nend 5\n", "seed 1\nhonest 2\nhostile 0\n3 dance 1\nend 5\n",
        "seed 1\nhonest 2\nhostile 0\n3 leave 1\nend 5\n", "seed 1\nhonest 2\nhostile 0\n3 leave 1 x\nend 5\n",
        "seed 1\nhonest 2\nhostile 0\n3 leave 1 1\n2 leave 1 1\nend 5\n", "seed 1\nhonest 2\nhostile 0\n8 leave 1 1\nend 5\n",
    ])
    func whatIsNoScheduleIsRefused(text: String) {
        #expect(throws: Schedule.Unreadable.self) { try Schedule(text: text) }
    }
}
