import EarshotWire
import Foundation
import Testing

/// Floods with every type of frame: by strangers and members, before and after the proof, during and after a session, from 1, 12 and 100
/// connections. They are built from `FrameType` itself, so a new type is included automatically.
extension HostileTests {
    @Suite struct Floods {
        /// Floods when the proof is due, or never sent.
        @Test("floods of every frame before the proof", arguments: [1, 12, 100]) func beforeTheProof(_ connections: Int) throws {
            try self.flood(.unproven, connections)
        }

        @Test("floods of every frame by strangers", arguments: [1, 12, 100])
        func theDaemonOutlivesFloodsByStrangers(_ connections: Int) throws {
            try self.flood(.stranger, connections)
        }

        @Test("floods of every frame by members of a session", arguments: [1, 12, 100])
        func theDaemonOutlivesFloodsByMembers(_ connections: Int) throws {
            try self.flood(.member, connections)
        }

        @Test("floods of every frame after the session has ended", arguments: [1, 12, 100])
        func theDaemonOutlivesFloodsByFormerMembers(_ connections: Int) throws {
            try self.flood(.former, connections)
        }

        /// Floods with each type alone, then with all types in random orders, and at last with peers that read nothing. At a tenth of the
        /// scale, types alone run only from 12 connections, and times are checked only in total, since the runs are too short for a 99th
        /// percentile. A debug build's times are only printed then: they depend on the machine more than on the daemon.
        private func flood(_ stand: FloodStand, _ connections: Int) throws {
            let seeds: ClosedRange<UInt64> = Scale.isFull ? 1...5 : 1...1
            var kinds = seeds.flatMap { [FloodKind.mixed(seed: $0), .random(seed: $0)] }
            if Scale.isFull || connections == 12 { kinds = FloodKind.eachAlone + kinds }
            // The time for a test in which everything fails, within the limit of the suite.
            let deadline = ContinuousClock.now + .seconds(480)
            var field = try FloodField(stand, connections)
            var results: [FloodResult] = []
            var faults: [String] = []
            for kind in kinds {
                guard ContinuousClock.now < deadline else {
                    faults.append("\(kind): not reached")
                    continue
                }
                let time: Duration =
                    if case .alone = kind { .milliseconds(6 * Scale.of(100)) } else { .milliseconds(50 * Scale.of(100)) }
                let result = try field.run(kind, for: time)
                print("flood: \(stand), \(connections) connections: \(result.line)")
                let found = result.faults(withTimes: Scale.isFull)
                if !found.isEmpty { faults.append("\(kind): " + found.joined(separator: ", ")) }
                results.append(result)
                // The next kind is judged alone.
                if !found.isEmpty || !field.daemon.isAlive { field = try FloodField(stand, connections) }
            }
            field.flood.deafen(every: 2)
            let result = try field.run(.mixed(seed: 99), for: .milliseconds(50 * Scale.of(100)))
            print("flood: \(stand), \(connections) connections, half of them deaf: \(result.line)")
            faults += result.faults(withTimes: Scale.isFull).map { "half of them deaf: \($0)" }
            results.append(result)
            faults += try field.end().map { "afterwards: \($0)" }
            var all = FloodResult(name: "all")
            all.messages = results.flatMap(\.messages).sorted()
            all.calls = results.flatMap(\.calls).sorted()
            faults += all.faults(withTimes: Scale.isFull || Scale.isRelease)
            self.report(stand, connections, all, results)
            #expect(faults.isEmpty, "\(stand), \(connections) connections:\n\(faults.joined(separator: "\n"))")
        }

        private func report(_ stand: FloodStand, _ connections: Int, _ all: FloodResult, _ results: [FloodResult]) {
            func worst(_ key: (FloodResult) -> Double) -> (String, Double) {
                let result = results.max { key($0) < key($1) }
                return (result?.name ?? "-", FloodResult.rounded(result.map(key) ?? 0))
            }
            let (message, call, memory) = (worst(\.message), worst(\.call), worst { Double($0.growth >> 10) })
            print(
                "measured: floods of \(results.count) kinds, \(stand), \(connections) connections: 99 % of \(all.messages.count) messages in"
                    + " \(FloodResult.rounded(all.message)) ms (\(message.0): \(message.1) ms), /v1/status in \(FloodResult.rounded(all.call)) ms"
                    + " (\(call.0): \(call.1) ms), memory +\(Int(memory.1)) KiB (\(memory.0))")
        }
    }
}
