import EarshotWire
import Foundation
import Logging
import NIOCore
import Synchronization
import Testing

@testable import Earshot

/// A discovery whose sightings come from the test.
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

/// A node on loopback with its own state directory, which can be stopped and restarted.
final class TestNode: Sendable {
    let node: Node
    let discovery: ScriptedDiscovery
    /// Deleted with the last node that uses it.
    let state: StateDirectory
    var directory: String { self.state.path }
    let name: String
    private let task: Task<Void, Never>
    let port: UInt16

    /// Creates a node. `awaiting` is a directory for received files that may be missing.
    init(
        _ name: String, in state: StateDirectory? = nil, serviceType: String = "earshot", awaiting directory: String? = nil,
        devices: (any DeviceTransport)? = nil, logger: Logger? = nil, configure: (inout Node.Configuration) -> Void = { _ in }
    ) async throws {
        let state = try state ?? StateDirectory()
        var configuration = Node.Configuration(
            displayName: try DisplayName(name), serviceType: try ServiceType(serviceType), stateDirectory: state.path)
        configuration.port = 0
        configure(&configuration)
        self.name = name
        self.state = state
        self.discovery = ScriptedDiscovery()
        var quiet = Logger(label: name)
        quiet.logLevel = .critical
        let node = try await Node(
            configuration: configuration, discovery: self.discovery, devices: devices, logger: logger ?? quiet)
        if let directory { await node.awaitReceiveDirectory(directory) }
        try await node.start()
        self.node = node
        self.port = await node.status().port
        self.task = Task { await node.run() }
    }

    /// Ends the node also if the test fails.
    deinit { self.task.cancel() }

    /// Stops in order, like SIGTERM.
    func stop() async {
        self.cancel()
        await self.ended()
    }

    func cancel() { self.task.cancel() }
    func ended() async { await self.task.value }

    /// Returns the sighting of this node on the loopback interface.
    func sighting(id: PeerID? = nil, name: String? = nil, port: UInt16? = nil) -> Sighting {
        Sighting(
            key: Sighting.Key(instanceName: name ?? self.name, interfaceIndex: 1, overIPv6: false), interfaceName: "lo", isLoopback: true,
            addresses: ["127.0.0.1"], port: port ?? self.port,
            txt: [
                TXTPair(key: "v", value: Array("1".utf8)), TXTPair(key: "id", value: Array((id ?? self.node.id).description.utf8)),
                TXTPair(key: "name", value: Array((name ?? self.name).utf8)),
            ])
    }

    /// Reports a sighting of `other` to this node.
    func sees(_ other: TestNode) { self.discovery.tell(.found(.embedded, other.sighting())) }

    /// Waits for the first event that `match` accepts, since number `since` or from now on.
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

    /// Returns all events so far, except the marks of this function.
    func told() async throws -> [NodeEvent.Kind] {
        let mark = UUID().uuidString
        self.discovery.tell(.status(DiscoveryStatus(backend: .embedded, state: .unavailable, error: mark)))
        var kinds: [NodeEvent.Kind] = []
        for await event in self.node.events.subscribe(since: 0) {
            guard case .discoveryChanged(let status) = event.kind else {
                kinds.append(event.kind)
                continue
            }
            if status.error == mark { break }
        }
        return kinds
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
            to: [other.node.id], contentType: "text/plain", body: ByteBuffer(string: text), id: id, timeout: timeout)
    }

    func inbox() async throws -> [String] {
        try await self.node.messages().map { String(buffer: $0.body) }
    }
}

/// Creates two nodes that see each other and, with `inSession`, are in a session.
func pair(
    inSession: Bool = true, configureAlice: (inout Node.Configuration) -> Void = { _ in },
    configureBob: (inout Node.Configuration) -> Void = { _ in }
) async throws -> (alice: TestNode, bob: TestNode) {
    let alice = try await TestNode("alice", configure: configureAlice)
    let bob = try await TestNode("bob", configure: configureBob)
    alice.sees(bob)
    bob.sees(alice)
    try await alice.found(bob)
    try await bob.found(alice)
    if inSession { try await agree(alice, bob) }
    return (alice, bob)
}

/// Alice invites, and bob accepts.
func agree(_ alice: TestNode, _ bob: TestNode) async throws {
    let sent = try await alice.node.invite(bob.node.id, timeout: .seconds(60))
    let received = try await bob.invitation()
    try await bob.node.respond(to: received.id, .accept)
    let decided = try await alice.node.outcome(of: sent.id)
    try #require(decided.state == .accepted)
}
