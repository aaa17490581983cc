import EarshotSafety
import EarshotWire
import Foundation
import NIOCore
import Testing

@testable import Earshot
@testable import EarshotCore

/// Limits on the bandwidth of transfers between two nodes. The times are lower bounds, which a busy machine does not break.
@Suite(.timeLimit(.minutes(1))) struct NodeBandwidthTests {
    /// A transfer whose bytes take a second, over the control connection or over a data connection.
    struct Case: CustomTestStringConvertible, Sendable {
        let size: UInt64
        let encryption: EncryptionPreference
        let isSender: Bool
        var testDescription: String { "\(self.isSender ? "send" : "receive") \(self.size) bytes, encryption \(self.encryption.rawValue)" }
    }

    static let cases = [EncryptionPreference.required, .none].flatMap { encryption in
        [true, false].flatMap { isSender in
            [1 << 20, EarshotLimits.dataThreshold + 1].map { Case(size: $0, encryption: encryption, isSender: isSender) }
        }
    }

    /// Two nodes, of which one has a limit on this direction.
    private func limited(to rate: UInt64, _ one: Case) async throws -> (TestNode, TestNode) {
        try await pair {
            $0.encryption = one.encryption
            if one.isSender { $0.sendLimit = rate }
        } configureBob: {
            $0.encryption = one.encryption
            if !one.isSender { $0.receiveLimit = rate }
        }
    }

    private func file(_ size: UInt64, of node: TestNode, named name: String = "x") throws -> String {
        let path = "\(node.directory)/\(name)"
        try Data(repeating: 1, count: Int(size)).write(to: URL(fileURLWithPath: path))
        return path
    }

    private func finished(_ id: ResourceID, at node: TestNode) async throws -> Resource {
        try await node.event { if case .resourceFinished(let row) = $0, row.id == id { row } else { nil } }
    }

    @Test(arguments: cases) func aLimitedTransferTakesItsTime(_ one: Case) async throws {
        let (alice, bob) = try await self.limited(to: one.size, one)
        let path = try self.file(one.size, of: alice)
        let start = ContinuousClock.now
        let id = try #require(try await alice.node.sendResource(to: ["bob"], path: path).first).id
        let row = try await self.finished(id, at: alice)
        #expect(row.state == .completed, "\(row)")
        #expect(ContinuousClock.now - start >= .seconds(1))
        let status = await (one.isSender ? alice : bob).node.status()
        #expect(status.sendLimit == (one.isSender ? one.size : nil) && status.receiveLimit == (one.isSender ? nil : one.size))
        await alice.stop()
        await bob.stop()
    }

    /// A body, and a file that the caller holds open.
    @Test(arguments: [true, false]) func aTransfersOwnLimit(isBody: Bool) async throws {
        let (alice, bob) = try await pair()
        let size = EarshotLimits.dataThreshold + 1
        let start = ContinuousClock.now
        if isBody {
            let body = AsyncStream { continuation in
                continuation.yield(ByteBuffer(repeating: 1, count: Int(size)))
                continuation.finish()
            }
            _ = try await alice.node.sendResource(to: ["bob"], name: "x", size: size, limit: size, body: body)
        } else {
            let held = HeldFile(OpenFile(descriptor: open(try self.file(size, of: alice), O_RDONLY | O_CLOEXEC), subject: "x"), name: "x")
            _ = try await alice.node.sendResource(to: ["bob"], file: held, as: .random(), digest: .xxh3, limit: size) { _ in }
        }
        #expect(ContinuousClock.now - start >= .seconds(1))
        await alice.stop()
        await bob.stop()
    }

    /// At the lowest limit, five megabytes would take more than an hour.
    @Test(arguments: cases) func aSlowTransferIsCancelledAtOnce(_ one: Case) async throws {
        let (alice, bob) = try await self.limited(to: WireLimits.transferRate.lowerBound, one)
        let path = try self.file(one.size, of: alice)
        let id = try #require(try await alice.node.sendResource(to: ["bob"], path: path).first).id
        try await eventually("bytes move") { await bob.node.resources().contains { $0.transferred > 0 } }
        _ = try await alice.node.removeResource(id)
        #expect(try await self.finished(id, at: bob).state == .cancelled)
        // The movers have stopped too.
        try await eventually("nothing is left") { try await bob.node.spool.heldBytes() == 0 && bob.spoolNames() == [] }
        #expect(await alice.node.transferMovers.isEmpty)
        await alice.stop()
        await bob.stop()
    }

    /// Without the change, the transfer would take more than an hour.
    @Test(arguments: cases) func aChangedLimitTakesHold(_ one: Case) async throws {
        let (alice, bob) = try await self.limited(to: WireLimits.transferRate.lowerBound, one)
        let path = try self.file(one.size, of: alice)
        let id = try #require(try await alice.node.sendResource(to: ["bob"], path: path).first).id
        try await eventually("bytes move") { await bob.node.resources().contains { $0.transferred > 0 } }
        try await alice.reconfigure { $0.sendLimit = nil }
        try await bob.reconfigure { $0.receiveLimit = nil }
        #expect(try await self.finished(id, at: alice).state == .completed)
        await alice.stop()
        await bob.stop()
    }

    @Test func limitsOutsideTheRangeAreRefused() async throws {
        let (alice, bob) = try await pair()
        let path = try self.file(1, of: alice)
        let range = WireLimits.transferRate
        for limit in [0, range.lowerBound - 1, range.upperBound + 1] {
            let error = await #expect(throws: EarshotError.self) {
                try await alice.node.sendResource(to: ["bob"], path: path, limit: limit)
            }
            #expect(error?.code == .invalidParameter)
        }
        for limit in [range.lowerBound, range.upperBound] {
            let id = try #require(try await alice.node.sendResource(to: ["bob"], path: path, limit: limit).first).id
            #expect(try await self.finished(id, at: alice).state == .completed)
        }
        // The settings of a program are clamped instead.
        try await alice.reconfigure {
            $0.sendLimit = 0
            $0.receiveLimit = .max
        }
        let settings = await alice.node.core.settings
        #expect(settings.sendLimit == range.lowerBound && settings.receiveLimit == range.upperBound)
        await alice.stop()
        await bob.stop()
    }

    /// A queued transfer keeps its limit on disk.
    @Test func aQueuedTransferKeepsItsLimit() async throws {
        let (alice, bob) = try await pair()
        await bob.stop()
        let path = try self.file(1000, of: alice)
        let id = try #require(try await alice.node.sendResource(to: ["bob"], path: path, limit: 4096, queue: true).first).id
        await alice.stop()
        let again = try await TestNode("alice", in: alice.state)
        #expect(await again.node.core.transfers[id]?.stored?.limit == 4096)
        await again.stop()
    }
}
