import Earshot
import EarshotWire
import Foundation
import Logging

/// A node in a directory of its own, which takes every invitation; others reach it by its address.
enum BenchmarkNode {
    /// Runs `body` with a node that is running.
    static func with<Result: Sendable>(
        _ name: String, port: UInt16 = 0, peers: [String] = [], encryption: EncryptionPreference,
        _ body: @escaping @Sendable (Node) async throws -> Result
    ) async throws -> Result {
        let directory = "\(NSTemporaryDirectory())/benchmark-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: directory) }
        var configuration = Node.Configuration(
            displayName: try DisplayName(name), serviceType: try ServiceType("earshot"), stateDirectory: directory)
        configuration.port = port
        configuration.portIsFixed = port != 0
        configuration.encryption = encryption
        configuration.fromUnknown = .accept
        configuration.inboxLimit = 10_000_000
        configuration.inboxSize = 16 << 30
        configuration.configuredPeers = try peers.map { try ConfiguredPeer($0) }
        var logger = Logger(label: name)
        logger.logLevel = .error
        let node = try await Node(configuration: configuration, discovery: nil, logger: logger)
        try await node.start()
        return try await withThrowingTaskGroup(of: Result?.self) { group in
            group.addTask {
                await node.run()
                return nil
            }
            group.addTask { try await body(node) }
            defer { group.cancelAll() }
            while let result = try await group.next() {
                if let result { return result }
            }
            throw CancellationError()
        }
    }

    /// Waits until a peer is found and proven, and joins a session with it. While the peer is busy, invites it again each second.
    static func agree(_ node: Node) async throws -> Peer {
        for await event in node.events.subscribe(since: 0) {
            switch event.kind {
            case .peerFound(let peer) where peer.proven, .peerChanged(let peer) where peer.proven:
                while true {
                    let sent = try await node.invite(peer.id)
                    let decided = try await node.outcome(of: sent.id)
                    if decided.state == .accepted { return peer }
                    guard decided.error == .busy else { throw EarshotError(.declined, "the invitation is \(decided.state)") }
                    try await Task.sleep(for: .seconds(1))
                }
            default: continue
            }
        }
        throw CancellationError()
    }
}

extension EncryptionPreference {
    /// From the command line.
    init(named name: String) throws {
        guard let preference = EncryptionPreference(rawValue: name) else {
            throw EarshotError(.invalidParameter, "an encryption is required, optional or none")
        }
        self = preference
    }
}
