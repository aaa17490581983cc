import Earshot
import Foundation
import Testing

@testable import MultipeerConnectivity

/// In any order of invitations, answers and introductions, connected programs form one mesh.
@Suite struct PairingTests {
    /// The number of worlds of each kind; `EARSHOT_WORLDS` sets another number.
    static let worlds = ProcessInfo.processInfo.environment["EARSHOT_WORLDS"].flatMap { UInt64($0) } ?? 1_000

    /// Returns the first fault of a world that has come to rest, if there is one.
    private func fault(in world: PairingWorld) -> String? {
        guard world.steps < 100_000 else { return "does not come to rest" }
        for (one, program) in world.programs.enumerated() where program.isAlive {
            for (other, there) in world.programs.enumerated() where other != one {
                let told = program.told[other] ?? []
                for (before, after) in zip([.notConnected] + told, told) where after == .connected && before != .connecting {
                    return "p\(one) was told \(told) of p\(other)"
                }
                if zip(told, told.dropFirst()).contains(where: { $0 == .notConnected && $1 == .notConnected }) {
                    return "p\(one) was told twice that p\(other) is not connected: \(told)"
                }
                guard there.isAlive else {
                    if told.last ?? .notConnected != .notConnected { return "p\(one) was told \(told) of p\(other), which is dead" }
                    continue
                }
                let isConnected = program.isConnected(other)
                guard isConnected == there.isConnected(one), isConnected == (program.sessions[other] != nil) else {
                    return "p\(one) was told \(told) of p\(other), which was told \(there.told[one] ?? [])"
                }
                guard isConnected else { continue }
                for (third, last) in world.programs.enumerated() where third != one && third != other && last.isAlive {
                    if there.isConnected(third) != program.isConnected(third) {
                        return "p\(one) and p\(other) are together, and p\(third) was told \(last.told) with one of them alone"
                    }
                }
            }
        }
        return nil
    }

    /// Plays worlds, and reports the first one that fails.
    private func play(_ kind: UInt64, _ make: (UInt64) -> (PairingWorld, (PairingWorld) -> String?)) {
        for number in 0..<Self.worlds {
            var (world, check) = make(kind << 32 | number)
            world.run()
            guard let fault = self.fault(in: world) ?? check(world) else { continue }
            Issue.record("world \(kind << 32 | number): \(fault)")
            return
        }
    }

    private func world(_ seed: UInt64, _ programs: ClosedRange<Int>, _ acceptance: [PairingWorld.Acceptance]) -> PairingWorld {
        var random = SplitMix(state: ~seed)
        let count = Int.random(in: programs, using: &random)
        let kinds = (0..<count).map { _ in acceptance.randomElement(using: &random) ?? .all }
        return PairingWorld(seed: seed, programs: count, acceptance: kinds)
    }

    @Test func everybodyInvitesEverybody() {
        self.play(1) { seed in
            var world = self.world(seed, 2...8, [.all])
            for one in world.programs.indices {
                for other in world.programs.indices where other != one { world.plan(within: .seconds(1)) { $0.invite(other, by: one) } }
            }
            return (
                world,
                {
                    for (index, program) in $0.programs.enumerated() {
                        if program.sessions.count != world.programs.count - 1 { return "p\(index) is not together with all" }
                        for told in program.told.values where told != [.connecting, .connected] { return "p\(index) was told \(told)" }
                    }
                    return nil
                }
            )
        }
    }

    /// Programs that invite some of the others, and accept all, one, or none.
    @Test func someInviteSome() {
        self.play(2) { seed in
            var world = self.world(seed, 2...6, PairingWorld.Acceptance.allCases)
            for one in world.programs.indices {
                for other in world.programs.indices where other != one && UInt8.random(in: 0..<3, using: &world.random) == 0 {
                    world.plan(within: .milliseconds(500)) { $0.invite(other, by: one) }
                }
            }
            return (world, { _ in nil })
        }
    }

    /// Two members invite a newcomer that accepts the first of them, and advertises no more.
    @Test func aNewcomerThatAcceptsTheFirst() {
        self.play(3) { seed in
            var world = PairingWorld(seed: seed, programs: 3, acceptance: [.all, .all, .first])
            world.plan(within: .milliseconds(300)) { $0.invite(1, by: 0) }
            for member in 0...1 { world.plan(within: .milliseconds(300)) { $0.invite(2, by: member) } }
            return (world, { $0.programs.allSatisfy { $0.sessions.count == 2 } ? nil : "no mesh" })
        }
    }

    /// A program of a mesh is killed, while invitations that its peers made after they were connected are still valid.
    @Test func oneIsKilled() {
        self.play(5) { seed in
            var world = self.world(seed, 2...5, [.all])
            for one in world.programs.indices {
                for other in world.programs.indices where other != one {
                    world.plan(within: .milliseconds(500)) { $0.invite(other, by: one) }
                }
            }
            world.plan(after: .seconds(1), within: .seconds(3)) { $0.kill(0) }
            return (world, { $0.programs.allSatisfy { !$0.isAlive || $0.sessions.count == world.programs.count - 2 } ? nil : "no mesh" })
        }
    }

    /// A program of a mesh is killed and starts again. It invites the others, or the others that find it invite it.
    @Test func oneStartsAgain() {
        self.play(4) { seed in
            var world = self.world(seed, 2...5, [.all])
            for one in world.programs.indices {
                for other in world.programs.indices where other != one {
                    world.plan(within: .milliseconds(100)) { $0.invite(other, by: one) }
                }
            }
            let invites = Bool.random(using: &world.random)
            world.plan(within: .seconds(3)) { world in
                world.restart(0)
                for other in world.programs.indices.dropFirst()
                where invites || UInt8.random(in: 0..<2, using: &world.random) == 0 || other == 1 {
                    world.plan(within: .seconds(1)) { invites ? $0.invite(other, by: 0) : $0.invite(0, by: other) }
                }
            }
            return (
                world,
                { world in
                    for (index, program) in world.programs.enumerated() {
                        guard program.sessions.count == world.programs.count - 1 else { return "p\(index) is not together with all" }
                        let told = program.told[0] ?? []
                        // Each process of the restarted program is reported separately.
                        for (before, after) in zip(told, told.dropFirst()) where before == .connected && after != .notConnected {
                            return "p\(index) was told \(told) of the one that started again"
                        }
                        // No attempt fails after the first connection.
                        let later = told.drop { $0 != .connected }
                        guard later.count(where: { $0 == .notConnected }) <= 1 else {
                            return "p\(index) was told \(told) of the one that started again"
                        }
                    }
                    return nil
                }
            )
        }
    }
}
