import EarshotWire
import Foundation
import Logging
import NIOCore
import Synchronization
import Testing

@testable import Earshot

/// Discovery whose sightings a test makes.
final class ScriptedDiscovery: PeerDiscovery {
    let events: AsyncStream<DiscoveryEvent>
    private let continuation: AsyncStream<DiscoveryEvent>.Continuation
    private let advertisement = Mutex<Advertisement?>(nil)

    init() {
        (self.events, self.continuation) = AsyncStream.makeStream()
    }

    var advertised: Advertisement? { self.advertisement.withLock { $0 } }

    func run(advertising advertisement: Advertisement?, browsing serviceType: String?) async {
        self.advertisement.withLock { $0 = advertisement }
        self.continuation.yield(.status(DiscoveryStatus(backend: .embedded, state: .running)))
        await withTaskCancellationHandler {
            let never = AsyncStream<Never> { _ in }
            for await _ in never {}
        } onCancel: {
            self.continuation.finish()
        }
    }

    func tell(_ event: DiscoveryEvent) { self.continuation.yield(event) }
}

/// A node on loopback with a state directory of its own, which can be stopped and started again.
final class TestNode: Sendable {
    let node: Node
    let discovery: ScriptedDiscovery
    let directory: String
    let name: String
    private let task: Task<Void, Never>
    let port: UInt16

    static func temporaryDirectory() -> String {
        let path = FileManager.default.temporaryDirectory.path + "/earshot-test-" + UUID().uuidString
        try? FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        return path
    }

    init(
        _ name: String, directory: String = TestNode.temporaryDirectory(), serviceType: String = "earshot",
        configure: (inout Node.Configuration) -> Void = { _ in }
    ) async throws {
        var configuration = Node.Configuration(
            displayName: try DisplayName(name), serviceType: try ServiceType(serviceType), stateDirectory: directory)
        configuration.port = 0
        configure(&configuration)
        self.name = name
        self.directory = directory
        self.discovery = ScriptedDiscovery()
        var logger = Logger(label: name)
        logger.logLevel = .error
        let node = try await Node(configuration: configuration, discovery: self.discovery, logger: logger)
        try await node.start()
        self.node = node
        self.port = await node.status().port
        self.task = Task { await node.run() }
    }

    /// Stops in order, as SIGTERM does.
    func stop() async {
        self.task.cancel()
        await self.task.value
    }

    /// How `other` looks on the loopback interface.
    func sighting(id: PeerID? = nil, name: String? = nil, port: UInt16? = nil) -> Sighting {
        Sighting(
            key: Sighting.Key(instanceName: name ?? self.name, interfaceIndex: 1, overIPv6: false), interfaceName: "lo", isLoopback: true,
            addresses: ["127.0.0.1"], port: port ?? self.port,
            txt: [
                TXTPair(key: "v", value: Array("1".utf8)), TXTPair(key: "id", value: Array((id ?? self.node.id).description.utf8)),
                TXTPair(key: "name", value: Array((name ?? self.name).utf8)),
            ])
    }

    /// Lets this node see `other`.
    func sees(_ other: TestNode) { self.discovery.tell(.found(.embedded, other.sighting())) }

    /// Waits for the first event that `match` takes, among those since `sequence` or from now on.
    func event<T>(since: UInt64? = 0, _ match: (NodeEvent.Kind) -> T?) async throws -> T {
        for await event in self.node.events.subscribe(since: since) {
            if let value = match(event.kind) { return value }
        }
        throw EarshotError(.notFound, "the events of \(self.name) ended without it")
    }

    /// Waits until this node lists `other`.
    func found(_ other: TestNode) async throws {
        try await self.event { kind -> Void? in
            switch kind {
            case .peerFound(let peer), .peerChanged(let peer): peer.id == other.node.id ? () : nil
            default: nil
            }
        }
    }

    func invitation() async throws -> Invitation {
        try await self.event {
            if case .invitationReceived(let invitation) = $0 { invitation } else { nil }
        }
    }

    func connected(to other: TestNode, since: UInt64? = 0) async throws {
        try await self.event(since: since) { kind -> Void? in
            if case .sessionChanged(let session, ended: false) = kind,
                session.members.contains(where: { $0.peerID == other.node.id && $0.state == .connected })
            {
                ()
            } else {
                nil
            }
        }
    }

    func send(_ text: String, to other: TestNode, id: MessageID? = nil, timeout: Duration? = .seconds(60)) async throws -> SentMessage {
        try await self.node.send(
            to: [other.node.id.description], contentType: "text/plain", body: ByteBuffer(string: text), id: id, timeout: timeout)
    }

    func inbox() async throws -> [String] {
        try await self.node.messages(state: nil, from: nil, limit: 1000).map { String(buffer: $0.body) }
    }
}

/// Two nodes that see each other and, where asked, are in a session.
func pair(inSession: Bool = true) async throws -> (alice: TestNode, bob: TestNode) {
    let alice = try await TestNode("alice")
    let bob = try await TestNode("bob")
    alice.sees(bob)
    bob.sees(alice)
    try await alice.found(bob)
    try await bob.found(alice)
    if inSession { try await agree(alice, bob) }
    return (alice, bob)
}

/// Alice invites, Bob accepts.
func agree(_ alice: TestNode, _ bob: TestNode) async throws {
    let sent = try await alice.node.invite(bob.node.id.description, context: [], timeout: .seconds(60))
    let received = try await bob.invitation()
    _ = try await bob.node.respond(to: received.id, .accept, always: false)
    let decided = try await alice.node.decided(sent.id)
    try #require(decided.state == .accepted)
}
