import Earshot
import EarshotClient
import EarshotWire
import Foundation
import Logging
import Synchronization
import Testing

@testable import earshotd

/// A time that a test moves.
final class ManualTime: Sendable {
    private let offset = Mutex(Duration.zero)
    private let start = ContinuousClock.now

    var now: ContinuousClock.Instant { self.start + self.offset.withLock { $0 } }

    func advance(by duration: Duration) { self.offset.withLock { $0 += duration } }
}

/// A node with its control API on a socket of its own, in this process.
final class APIServer: Sendable {
    let node: Node
    let readers: EventReaders
    /// The settings that the API shows and reloads. The node itself has the configuration of the test until the first reload.
    let settings: RunningSettings
    /// The settings file, empty unless the test writes to it.
    let configuration: String
    /// The control socket.
    let path: String
    /// Gone with the server.
    let place: String
    let port: UInt16
    private let tasks: [Task<Void, Never>]

    /// `peers` are reached without discovery; `owner` is whom the API takes for the daemon's own user.
    private init(
        _ name: String, at place: String? = nil, peers: [String] = [], readers: EventReaders = EventReaders(), owner: uid_t = geteuid(),
        configure: (inout Node.Configuration) -> Void = { _ in }
    ) async throws {
        let template = "/tmp/earshot-api-XXXXXX"
        var bytes = Array(template.utf8CString)
        self.place = try #require(place ?? mkdtemp(&bytes).map { String(cString: $0) })
        self.path = "\(self.place)/socket"
        var configuration = Node.Configuration(
            displayName: try DisplayName(name), serviceType: try ServiceType("earshot"), stateDirectory: "\(self.place)/state")
        configuration.port = 0
        configuration.configuredPeers = try peers.map { try ConfiguredPeer($0) }
        configure(&configuration)
        var logger = Logger(label: name)
        logger.logLevel = .critical
        let node = try await Node(configuration: configuration, discovery: nil, logger: logger)
        try await node.start()
        self.node = node
        self.readers = readers
        self.port = await node.status().port
        let policy = CallerPolicy(owner: owner, group: nil)
        self.configuration = "\(self.place)/earshotd.conf"
        if access(self.configuration, F_OK) != 0 { try Data().write(to: URL(fileURLWithPath: self.configuration)) }
        let loader = SettingsLoader(
            flags: .init(config: self.configuration, stateDirectory: "\(self.place)/state", socket: self.path), environment: [:],
            isRoot: false, hostName: name)
        let settings = RunningSettings(try loader.load())
        self.settings = settings
        let (started, announcer) = AsyncStream<Never>.makeStream()
        announcer.finish()
        let reload = ReloadService(
            loader: loader, settings: settings, node: node, manager: ServiceManager(environment: [:]), level: LogLevel(.critical),
            ready: started, logger: logger)
        let (isReady, ready) = AsyncStream<Void>.makeStream()
        let server = ControlServer(
            socket: try ControlSocket.claim(self.path), policy: policy,
            api: ControlAPIServices(node: node, policy: policy, settings: settings, readers: readers), logger: logger,
            onReady: { ready.finish() })
        self.tasks = [
            Task { await node.run() },
            Task { await reload.serve() },
            Task {
                try? await server.run()
                ready.finish()
            },
        ]
        for await _ in isReady {}
    }

    /// Runs a test against one server; `place` is that of an earlier one, which was stopped.
    static func with(
        _ name: String = "alice", at place: String? = nil, readers: EventReaders = EventReaders(), owner: uid_t = geteuid(),
        configure: (inout Node.Configuration) -> Void = { _ in }, _ body: (APIServer) async throws -> Void
    ) async throws {
        let server = try await APIServer(name, at: place, readers: readers, owner: owner, configure: configure)
        try await Self.ending([server]) { try await body(server) }
    }

    /// Runs a test against two servers whose nodes see each other; bob accepts every invitation, alice is asked about every file.
    static func pair(
        encryption: EncryptionPreference = .required, _ body: (_ alice: APIServer, _ bob: APIServer) async throws -> Void
    ) async throws {
        let alice = try await APIServer("alice") {
            $0.acceptResources = .ask
            $0.encryption = encryption
        }
        let bob = try await APIServer("bob", peers: ["127.0.0.1:\(alice.port)"]) {
            $0.fromUnknown = .accept
            $0.encryption = encryption
        }
        try await Self.ending([alice, bob]) {
            let events = alice.node.events.subscribe(since: 0)
            // The configured peer's connection makes bob known to alice.
            for await event in events {
                if case .peerFound(let peer) = event.kind, peer.id == bob.node.id { break }
                if case .peerChanged(let peer) = event.kind, peer.id == bob.node.id { break }
            }
            try await body(alice, bob)
        }
    }

    /// A session with another, which accepts every invitation: both have it when this returns.
    func agree(with other: APIServer) async throws {
        _ = try await self.node.invite(other.node.id.description, context: [], timeout: nil)
        for server in [self, other] {
            for await event in server.node.events.subscribe(since: 0) {
                if case .sessionChanged(let session, ended: false) = event.kind, session.members.first?.state == .connected { break }
            }
        }
    }

    /// Ends the server; its state stays.
    func stop() async {
        for task in self.tasks { task.cancel() }
        for task in self.tasks { await task.value }
    }

    private static func ending(_ servers: [APIServer], _ body: () async throws -> Void) async throws {
        let result: Result<Void, any Error>
        do { result = .success(try await body()) } catch { result = .failure(error) }
        for server in servers {
            await server.stop()
            try? FileManager.default.removeItem(atPath: server.place)
        }
        try result.get()
    }
}
