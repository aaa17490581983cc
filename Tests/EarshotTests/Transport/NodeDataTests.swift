import EarshotWire
import Foundation
import NIOCore
import Testing

@testable import Earshot

/// Files over data connections, between two nodes on loopback.
@Suite(.timeLimit(.minutes(1))) struct NodeDataTests {
    static let size = 6_000_001

    /// Content in which blocks differ: its period is not a power of two.
    static func content(_ size: Int = size) -> Data {
        let block = Data((0..<65_537).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })
        var data = Data(capacity: size + block.count)
        while data.count < size { data.append(block) }
        return data.prefix(size)
    }

    private func finished(_ node: TestNode) async throws -> Resource {
        try await node.event { if case .resourceFinished(let row) = $0 { row } else { nil } }
    }

    /// Checks that a node has no data connections left.
    private func expectNoRoutes(_ node: TestNode) async throws {
        try await eventually("no data connection is left") { await node.node.core.dataPathCount == 0 }
        #expect(await node.node.transport.tickets.count == 0)
    }

    private func received(_ node: TestNode, _ id: ResourceID) async throws -> Data {
        let content = try await node.node.resourceContent(id)
        var data = Data()
        while true {
            let piece = try await content.read(at: UInt64(data.count), count: 4 << 20)
            guard piece.readableBytes > 0 else { return data }
            data.append(contentsOf: piece.readableBytesView)
        }
    }

    /// Both directions of the control connection, both transports: the initiator sends, and receives.
    @Test(arguments: [EncryptionPreference.required, .none], [true, false])
    func aLargeFile(_ encryption: EncryptionPreference, _ fromInitiator: Bool) async throws {
        let (alice, bob) = try await pair(configureAlice: { $0.encryption = encryption }, configureBob: { $0.encryption = encryption })
        let (sender, receiver) = fromInitiator ? (alice, bob) : (bob, alice)
        let path = sender.directory + "/large"
        try Self.content().write(to: URL(fileURLWithPath: path))
        _ = try await sender.node.sendResource(to: [receiver.name], path: path)
        let sent = try await self.finished(sender)
        #expect(sent.state == .completed, "\(sent)")
        let row = try await self.finished(receiver)
        #expect(row.state == .completed)
        #expect(row.transferred == UInt64(Self.size))
        #expect(row.digest == sent.digest)
        #expect(try await self.received(receiver, row.id) == Self.content())
        for node in [sender, receiver] { try await self.expectNoRoutes(node) }
        await alice.stop()
        await bob.stop()
    }
}
