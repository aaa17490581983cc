import Foundation
import Synchronization
import Testing

@testable import Earshot

/// Blocks one call at a time until it is released.
private final class Gate: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)

    func wait() { self.semaphore.wait() }
    func open() { self.semaphore.signal() }
}

@Suite(.timeLimit(.minutes(1))) struct HeartbeatTests {
    @Test func everyPartAnswers() async throws {
        let alice = try await TestNode("alice")
        let heartbeats = alice.node.heartbeats
        #expect(heartbeats.map(\.name) == ["node", "store", "spool", "discovery"])
        for heartbeat in heartbeats {
            await withCheckedContinuation { answer in heartbeat.ask { answer.resume() } }
        }
        await alice.stop()
    }

    /// Parts whose work may take long have patience before they count as stuck. The node itself has none.
    @Test func onlySlowPartsHavePatience() async throws {
        let alice = try await TestNode("alice")
        for heartbeat in alice.node.heartbeats {
            let patience: Duration =
                switch heartbeat.name {
                case "store": EarshotLimits.storePatience
                case "spool": EarshotLimits.spoolPatience
                case "discovery": EarshotLimits.discoveryPatience
                default: .zero
                }
            #expect(heartbeat.patience == patience, "\(heartbeat.name)")
        }
        await alice.stop()
    }

    @Test(arguments: ["node", "store", "spool"]) func onlyTheOneThatIsStuckDoesNot(_ name: String) async throws {
        let alice = try await TestNode("alice")
        let stuck = try #require(alice.node.heartbeats.first { $0.name == name })
        let gate = Gate()
        stuck.ask { gate.wait() }
        let answers = Mutex<[String]>([])
        stuck.ask { answers.withLock { $0.append(name) } }
        for heartbeat in alice.node.heartbeats where heartbeat.name != name {
            await withCheckedContinuation { answer in heartbeat.ask { answer.resume() } }
        }
        #expect(answers.withLock { $0 } == [])
        gate.open()
        try await eventually("it answers late") { answers.withLock { $0 } == [name] }
        await alice.stop()
    }

    @Test func theyAnswerUnderLoad() async throws {
        let (alice, bob) = try await pair()
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<200 {
                group.addTask { _ = try? await alice.send("\(number)", to: bob) }
            }
            for heartbeat in alice.node.heartbeats + bob.node.heartbeats {
                group.addTask { await withCheckedContinuation { answer in heartbeat.ask { answer.resume() } } }
            }
        }
        #expect(try await bob.inbox().count == 200)
        await alice.stop()
        await bob.stop()
    }
}
