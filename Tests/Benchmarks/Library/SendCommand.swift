import ArgumentParser
import Earshot
import EarshotWire
import Foundation
import NIOCore

/// Sends messages to the one peer at an address, as fast as it takes them.
struct SendCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "send")
    /// The content type of the message that ends a round.
    static let endType = "application/x-end"
    /// Messages that are handed over at once.
    static let batch = 1024

    @Argument var address: String
    @Option var count = 1_000_000
    @Option var size = 128
    @Option var rounds = 1
    @Option var mode = "unreliable"
    @Option var encryption = "required"

    func run() async throws {
        try await BenchmarkNode.with("sender", peers: [self.address], encryption: .init(named: self.encryption)) { node in
            let peer = try await BenchmarkNode.agree(node)
            let body = ByteBuffer(repeating: 0x78, count: self.size)
            for _ in 0..<self.rounds {
                let began = ContinuousClock.now
                let sent = self.mode == "reliable" ? try await self.reliable(node, peer, body) : try await self.unreliable(node, peer, body)
                say("\(Int(Double(sent) / ((ContinuousClock.now - began) / .seconds(1))))")
                _ = try await node.send(to: [peer.id], contentType: Self.endType, body: ByteBuffer())
            }
        }
    }

    private func drafts(_ peer: Peer, _ body: ByteBuffer, _ mode: Message.Mode) -> [MessageDraft] {
        let draft = MessageDraft(
            to: .peers([peer.id.description]), contentType: "application/octet-stream", body: body, mode: mode, timeout: .seconds(600))
        return Array(repeating: draft, count: Self.batch)
    }

    /// Sends unreliable messages. A message that cannot be sent immediately is dropped, so it is submitted again until it is sent.
    private func unreliable(_ node: Node, _ peer: Peer, _ body: ByteBuffer) async throws -> Int {
        let drafts = self.drafts(peer, body, .unreliable)
        var sent = 0
        while sent < self.count {
            let outcomes = await node.submit(drafts).outcomes()
            let gone = outcomes.count { (try? $0.get().recipients.first?.status) == .sent }
            sent += gone
            if gone < outcomes.count { try await Task.sleep(for: .microseconds(200)) }
        }
        return sent
    }

    private func reliable(_ node: Node, _ peer: Peer, _ body: ByteBuffer) async throws -> Int {
        let drafts = self.drafts(peer, body, .reliable)
        var under: [MessageBatch] = []
        var sent = 0
        while sent < self.count || !under.isEmpty {
            if sent < self.count, under.count < 16 {
                under.append(await node.submit(drafts))
                sent += drafts.count
                continue
            }
            for outcome in await under.removeFirst().outcomes() {
                let recipients = try outcome.get().recipients
                guard recipients.first?.status == .delivered else { throw EarshotError(.unconfirmed, "a message was not delivered") }
            }
        }
        return sent
    }
}
