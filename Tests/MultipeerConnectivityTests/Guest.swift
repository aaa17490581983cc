import Earshot
import Foundation
import Logging
import NIOCore
import Testing

@testable import MultipeerConnectivity

/// A node that speaks as programs do and belongs to none: it may go without leaving the session.
final class Guest: Sendable {
    let peer: MCPeerID
    private let node: Node
    private let invitation: InvitationID
    private let running: Task<Void, Never>

    /// Asks a program that advertises, and does not wait for its answer. A guest that starts again is the same peer.
    init(of host: Program, as peer: MCPeerID = MCPeerID(displayName: "guest")) async throws {
        var configuration = Node.Configuration.ephemeral(
            displayName: try DisplayName("guest"), serviceType: try ServiceType(PeerEngine.serviceType))
        configuration.encryption = .required
        configuration.identity = peer.identity
        configuration.sessionsEndWithPrograms = true
        let discovery = AirDiscovery(Air.shared, browsing: host.advertiser.serviceType)
        let node = try await Node(configuration: configuration, discovery: discovery, logger: Logger(label: "guest"))
        try await node.start()
        self.node = node
        self.peer = peer
        self.running = Task { await node.run() }
        for await event in node.events.subscribe(since: 0) {
            guard case .peerFound(let peer) = event.kind, peer.id == host.peer.id else { continue }
            break
        }
        let envelope = Envelope.invitation(type: host.advertiser.serviceType, context: nil)
        let id = host.peer.id.description
        self.invitation = try await node.invite(id, context: try #require(envelope.bytes), timeout: .seconds(60)).id
    }

    /// Says that it accepts the host's certificate, once it has heard that the host has accepted.
    func join(_ host: Program) async throws {
        _ = try await self.node.outcome(of: self.invitation)
        let own = Introduction(members: [.init(id: self.peer.id, name: "guest", addresses: [])])
        self.node.submit(
            MessageDraft(
                to: .peers([host.peer.id.description]), contentType: Introduction.contentType, body: ByteBuffer(bytes: try own.encoded()))
        ) { _ in }
    }

    /// Data that programs have sent to it.
    func data() async throws -> [String] {
        try await self.node.messagePage(state: nil, from: nil, after: 0, limit: 100).messages
            .filter { $0.contentType == OutgoingData.contentType }.map { String(buffer: $0.body) }
    }

    /// Begins to send a file.
    func send(_ url: URL, _ name: String, to host: Program) async throws {
        _ = try await self.node.sendResource(to: [host.peer.id.description], path: url.path, name: name)
    }

    /// Ends it; to the others its connection is lost.
    func end() async {
        self.running.cancel()
        await self.running.value
    }
}
