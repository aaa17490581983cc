import Earshot
import Foundation
import Logging
import Testing

@testable import MultipeerConnectivity

/// A node that speaks as programs do and belongs to none: it may go without leaving the session.
final class Guest: Sendable {
    let peer: MCPeerID
    private let node: Node
    private let invitation: InvitationID
    private let running: Task<Void, Never>

    /// Asks a program that advertises, and does not wait for its answer.
    init(of host: Program) async throws {
        var configuration = Node.Configuration.ephemeral(
            displayName: try DisplayName("guest"), serviceType: try ServiceType(PeerEngine.serviceType))
        configuration.encryption = .required
        let discovery = AirDiscovery(Air.shared, browsing: host.advertiser.serviceType)
        let node = try await Node(configuration: configuration, discovery: discovery, logger: Logger(label: "guest"))
        try await node.start()
        self.node = node
        self.peer = MCPeerID(id: node.id, displayName: "guest")
        self.running = Task { await node.run() }
        for await event in node.events.subscribe(since: 0) {
            guard case .peerFound(let peer) = event.kind, peer.id == host.peer.id else { continue }
            break
        }
        let envelope = Envelope.invitation(type: host.advertiser.serviceType, context: nil)
        let id = host.peer.id.description
        self.invitation = try await node.invite(id, context: try #require(envelope.bytes), timeout: .seconds(60)).id
    }

    /// Begins to send a file, once it has heard that the host has accepted.
    func send(_ url: URL, _ name: String, to host: Program) async throws {
        _ = try await self.node.decided(self.invitation)
        _ = try await self.node.sendResource(to: [host.peer.id.description], path: url.path, name: name)
    }

    /// Ends it; to the others its connection is lost.
    func end() async {
        self.running.cancel()
        await self.running.value
    }
}
