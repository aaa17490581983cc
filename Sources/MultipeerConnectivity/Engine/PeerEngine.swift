import Earshot
import Foundation
import Logging
import NIOCore
import Synchronization

/// The engine of a local peer: its node, and its pairs. All calls of the program and all events of the node are handled here in one order.
actor PeerEngine {
    nonisolated let peer: MCPeerID
    nonisolated var id: PeerID { self.peer.id }
    /// The service type of every connection of this module. It identifies the protocol, while the advertised types are the program's.
    static let serviceType = "multipeer"

    /// The number of invitations that a peer may send at once; after those, one a second.
    static let invitationBurst = 1_000

    typealias Work = @Sendable (isolated PeerEngine) async -> Void

    private nonisolated let work: AsyncStream<Work>.Continuation
    private nonisolated let running: Mutex<Task<Void, Never>?>
    /// The node, for synchronous callers.
    nonisolated let nodeInUse = Mutex<Node?>(nil)
    private(set) var node: Node?
    private var configuration: Node.Configuration
    nonisolated let discovery: NearbyDiscovery

    let began = ContinuousClock.now
    /// The states of all peers in sessions and of those that are joining.
    var pairing: Pairing
    var sessions: [SessionToken: WeakReference<MCSession>] = [:]
    /// Input from peers that the program does not know as connected yet.
    var held: [PeerID: [Work]] = [:]
    /// The first parts of data that is longer than a message.
    var parts: [PeerID: IncomingParts] = [:]
    var advertisers: [ServiceToken: WeakReference<MCNearbyServiceAdvertiser>] = [:]
    /// The display names of found peers, while a browser runs.
    private var names: [PeerID: String] = [:]
    /// Sightings of browsers that the node does not list yet.
    private var unlisted: [PeerID: [(token: ServiceToken, tell: @Sendable () -> Void)]] = [:]
    var browsers: [ServiceToken: WeakReference<MCNearbyServiceBrowser>] = [:]
    /// The encryption preferences of this peer's sessions.
    var preferences: [SessionToken: EncryptionPreference] = [:]
    var uploads: [ResourceID: OutgoingResource] = [:]
    var downloads: [ResourceID: IncomingResource] = [:]
    /// Messages that were not delivered to the program yet, and those that were found in the inbox after events were lost.
    var underWay: Set<MessageKey> = []
    var caughtUp: Set<MessageKey> = []
    private var startError: MCError?
    /// Why the node has refused the latest configuration; `nil` if it has not.
    private var refusal: MCError?

    init(_ peer: MCPeerID, _ identity: Identity, after predecessor: PeerEngine?) {
        self.peer = peer
        self.pairing = Pairing(id: peer.id)
        self.discovery = NearbyDiscovery { EngineOwner.makeDiscovery.withLock { $0 }() }
        guard let name = try? DisplayName(peer.displayName), let type = try? ServiceType(Self.serviceType) else {
            preconditionFailure("MultipeerConnectivity: \(peer.displayName) is no display name")
        }
        var configuration = Node.Configuration.ephemeral(displayName: name, serviceType: type)
        configuration.identity = identity
        configuration.encryption = .optional
        configuration.receipts = false
        configuration.sessionsEndWithPrograms = true
        // All other peers may be programs on one machine, each waiting for the answer of the program here.
        configuration.invitationsPerAddress = EarshotLimits.pendingInvitations
        // No practical limit: the program decides about each invitation.
        configuration.invitationBurst = Self.invitationBurst
        // Enough for everything that seven peers may send before the program takes any of it.
        configuration.inboxSize = 1 << 30
        configuration.inboxLimit = 1_000_000
        // The whole disk except the reserve.
        configuration.quota = 1 << 50
        self.configuration = configuration
        let (orders, work) = AsyncStream<Work>.makeStream()
        self.work = work
        self.running = Mutex(nil)
        let task = Task { [self] in
            await predecessor?.ended()
            await self.run(orders)
        }
        self.running.withLock { $0 = task }
    }

    /// Runs work in order with all other work.
    nonisolated func post(_ work: @escaping Work) { self.work.yield(work) }

    /// Ends the engine after all earlier work.
    nonisolated func stop() {
        self.post { await $0.endAll() }
        self.work.finish()
    }

    /// Waits until the engine has ended.
    nonisolated func ended() async { await self.running.withLock { $0 }?.value }

    private func run(_ orders: AsyncStream<Work>) async {
        do throws(EarshotError) {
            var logger = Logger(label: "multipeer")
            logger.logLevel = .error
            let node = try await Node(configuration: self.configuration, discovery: self.discovery, logger: logger)
            try await node.start()
            self.node = node
            self.nodeInUse.withLock { $0 = node }
            await withDiscardingTaskGroup { group in
                group.addTask { await node.run() }
                group.addTask { [work] in
                    for await event in node.events.subscribe(since: 0) { work.yield { await $0.handle(event.kind) } }
                }
                for await order in orders { await order(self) }
                group.cancelAll()
            }
        } catch {
            self.startError = MCError(.unavailable, error.message)
            for await order in orders { await order(self) }
        }
        self.nodeInUse.withLock { $0 = nil }
        self.node = nil
    }

    /// Returns the node.
    /// - Throws: the reason why there is none.
    func started() throws(MCError) -> Node {
        guard let node = self.node else { throw self.startError ?? MCError(.unavailable) }
        return node
    }

    // MARK: Advertising and browsing

    func advertise(_ advertiser: WeakReference<MCNearbyServiceAdvertiser>, _ token: ServiceToken, _ pairs: [TXTPair]) {
        guard let type = advertiser.value?.type else { return }
        if let error = self.startError ?? self.refusal {
            advertiser.value?.failed(error)
            return
        }
        self.advertisers[token] = advertiser
        self.discovery.advertise(token, type: type, pairs) { reason in advertiser.value?.failed(MCError(.unavailable, reason)) }
    }

    func stopAdvertising(_ token: ServiceToken) {
        self.advertisers[token] = nil
        self.discovery.stop(token)
    }

    func browse(_ browser: WeakReference<MCNearbyServiceBrowser>, _ token: ServiceToken) {
        guard let type = browser.value?.type else { return }
        if let error = self.startError ?? self.refusal {
            browser.value?.failed(error, token)
            return
        }
        self.browsers[token] = browser
        self.discovery.browse(token, type: type) { [weak self] sighted in
            self?.post { await $0.sighted(sighted, by: browser, token) }
        }
    }

    /// Handles a sighting. A peer is reported as found when the node lists it, because it cannot be invited before that.
    private func sighted(_ sighted: NearbyDiscovery.Sighted, by browser: WeakReference<MCNearbyServiceBrowser>, _ token: ServiceToken) async
    {
        switch sighted {
        case .found(let id, let name, let info):
            guard id != self.id else { return }
            let found = MCPeerID(id: id, displayName: name)
            self.names[id] = name
            guard await (try? self.node?.peer(id)) == nil else {
                browser.value?.found(found, info, token)
                return
            }
            self.unlisted[id, default: []].append((token, { browser.value?.found(found, info, token) }))
        case .lost(let id):
            guard id != self.id else { return }
            let name = self.names[id] ?? ""
            // The peer was lost before it was reported.
            let before = self.unlisted[id]?.count ?? 0
            self.unlisted[id]?.removeAll { $0.token == token }
            if before == self.unlisted[id]?.count ?? 0 { browser.value?.lost(MCPeerID(id: id, displayName: name), token) }
        case .failed(let reason): browser.value?.failed(MCError(.unavailable, reason), token)
        }
    }

    private func listed(_ id: PeerID) async {
        for waiting in self.unlisted.removeValue(forKey: id) ?? [] { waiting.tell() }
        await self.decide { $0.listed(id) }
    }

    func stopBrowsing(_ token: ServiceToken) {
        self.browsers[token] = nil
        for id in self.unlisted.keys { self.unlisted[id]?.removeAll { $0.token == token } }
        if self.browsers.isEmpty { (self.names, self.unlisted) = ([:], [:]) }
        self.discovery.stop(token)
    }

    // MARK: Settings

    /// Updates the node's configuration for the preferences of the sessions and the addresses of introduced peers.
    ///
    /// If the node refuses the configuration, all advertisers and browsers report the error, like those of a node that did not start. The
    /// configuration is tried again when a session is opened or closed.
    func configure(_ change: (inout Node.Configuration) -> Void) async {
        var new = self.configuration
        change(&new)
        guard new.encryption != self.configuration.encryption || new.configuredPeers != self.configuration.configuredPeers else { return }
        do throws(EarshotError) {
            try await self.node?.apply(new) { nil }
            self.configuration = new
            self.refusal = nil
        } catch {
            let refusal = MCError(.unavailable, error.message)
            self.refusal = refusal
            for advertiser in self.advertisers.values { advertiser.value?.failed(refusal) }
            for (token, browser) in self.browsers { browser.value?.failed(refusal, token) }
        }
    }

    /// Opens a session of the program.
    func open(_ token: SessionToken, _ session: WeakReference<MCSession>, _ preference: EncryptionPreference) async {
        self.sessions[token] = session
        await self.decide { $0.open(token) }
        await self.prefer(preference, token)
    }

    /// Closes a session that the program leaves or has released.
    func close(_ token: SessionToken) async {
        await self.decide { $0.close(token) }
        self.sessions[token] = nil
        await self.prefer(nil, token)
    }

    private func prefer(_ preference: EncryptionPreference?, _ token: SessionToken) async {
        self.preferences[token] = preference
        let all = Set(self.preferences.values)
        // If the preferences differ, each session checks the protection of its connections.
        let common = all.count == 1 ? all.first ?? .optional : .optional
        await self.configure { $0.encryption = common }
    }

    /// Sets the addresses of a peer that discovery has not seen. Without addresses, removes them.
    func reach(_ id: PeerID, at addresses: [String]) async {
        let places = addresses.prefix(Introduction.addressLimit).compactMap { try? ConfiguredPeer("\(id)@\($0)") }
        await self.configure { configuration in
            configuration.configuredPeers = configuration.configuredPeers.filter { $0.id != id } + places
        }
    }

    // MARK: Events

    private func handle(_ event: NodeEvent.Kind) async {
        switch event {
        case .peerFound(let peer): await self.listed(peer.id)
        case .invitationReceived(let invitation): await self.invited(invitation)
        case .invitationResolved(let invitation):
            await self.decide { $0.resolved(invitation.id, by: invitation.peerID, invitation.direction, invitation.state) }
        case .sessionChanged(let session, let isEnded): await self.changed(session, isEnded: isEnded)
        case .messageReceived(let message): await self.receivedByEvent(message)
        case .streamOpened(let stream): await self.opened(stream)
        case .resourceOffered(let row), .resourceProgress(let row): await self.moved(row)
        case .resourceFinished(let row): await self.finished(row)
        case .gap: await self.catchUp()
        default: break
        }
    }

    /// Searches for the important changes after events were lost.
    private func catchUp() async {
        guard let node = self.node else { return }
        for peer in await node.peers() { await self.listed(peer.id) }
        for invitation in await node.invitations(all: false)
        where invitation.direction == .incoming && !self.pairing.questions.contains(invitation.id, of: invitation.peerID) {
            await self.invited(invitation)
        }
        let sessions = await node.sessions()
        for session in sessions { await self.changed(session, isEnded: false) }
        let members = Set(sessions.flatMap { $0.members.map(\.peerID) })
        for (id, pair) in self.pairing.pairs where !members.contains(id) {
            if let session = pair.sessionID { await self.decide { $0.ended(session, id) } }
        }
        await self.catchUpOnMessages()
        for row in await node.resources() {
            if row.state.isFinal { await self.finished(row) } else { await self.moved(row) }
        }
    }

    private func endAll() async {
        await self.decide { $0.endAll() }
        for token in self.advertisers.keys { self.discovery.stop(token) }
        for token in self.browsers.keys { self.discovery.stop(token) }
    }
}
