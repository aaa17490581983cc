import Earshot
import Foundation
import Logging
import NIOCore
import Synchronization

/// One of our own peers at work: its node, and the pairs that it is in. Everything that the program asks and that the node tells comes here in one
/// order.
actor PeerEngine {
    nonisolated let peer: MCPeerID
    nonisolated var id: PeerID { self.peer.id }
    /// What both sides of every connection of this module name: what is spoken there, while what is advertised is the program's own type.
    static let serviceType = "multipeer"

    /// How many invitations a peer may send at once; after those, one a second.
    static let invitationBurst = 1_000

    typealias Work = @Sendable (isolated PeerEngine) async -> Void

    private nonisolated let work: AsyncStream<Work>.Continuation
    private nonisolated let running: Mutex<Task<Void, Never>?>
    /// For callers that do not wait.
    nonisolated let nodeInUse = Mutex<Node?>(nil)
    private(set) var node: Node?
    private var configuration: Node.Configuration
    nonisolated let discovery: NearbyDiscovery

    let began = ContinuousClock.now
    /// Which peers are in which sessions, and on their way there.
    var pairing: Pairing
    var sessions: [SessionToken: WeakReference<MCSession>] = [:]
    /// What has come from a peer before it was connected for the program.
    var held: [PeerID: [Work]] = [:]
    /// The first parts of data that is longer than a message.
    var parts: [PeerID: IncomingParts] = [:]
    var advertisers: [ServiceToken: WeakReference<MCNearbyServiceAdvertiser>] = [:]
    /// How found peers call themselves, for as long as a browser runs.
    private var names: [PeerID: String] = [:]
    /// What browsers have seen and the node does not list yet.
    private var unlisted: [PeerID: [(token: ServiceToken, tell: @Sendable () -> Void)]] = [:]
    var browsers: [ServiceToken: WeakReference<MCNearbyServiceBrowser>] = [:]
    /// What the sessions of this peer want of their connections.
    var preferences: [SessionToken: EncryptionPreference] = [:]
    var uploads: [ResourceID: OutgoingResource] = [:]
    var downloads: [ResourceID: IncomingResource] = [:]
    /// Messages that the program has not had yet, and those that were found in the inbox when events were lost.
    var underWay: Set<MessageKey> = []
    var caughtUp: Set<MessageKey> = []
    private var startError: MCError?

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
        // All others may be programs on one machine, each waiting for the answer of the program here.
        configuration.invitationsPerAddress = EarshotLimits.pendingInvitations
        // As often as programs like: each invitation is for the program to judge.
        configuration.invitationBurst = Self.invitationBurst
        // All that seven peers may send before the program takes any of it.
        configuration.inboxSize = 1 << 30
        configuration.inboxLimit = 1_000_000
        // As much as the disk has, but for the reserve.
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

    /// Does something in order with everything else.
    nonisolated func post(_ work: @escaping Work) { self.work.yield(work) }

    /// Ends everything, once what was asked before is done.
    nonisolated func stop() {
        self.post { await $0.endAll() }
        self.work.finish()
    }

    /// Returns once it has ended.
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

    /// The node, or why there is none.
    func started() throws(MCError) -> Node {
        guard let node = self.node else { throw self.startError ?? MCError(.unavailable) }
        return node
    }

    // MARK: Advertising and browsing

    func advertise(_ advertiser: WeakReference<MCNearbyServiceAdvertiser>, _ token: ServiceToken, _ pairs: [TXTPair]) {
        guard let type = advertiser.value?.type else { return }
        if let error = self.startError {
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
        if let error = self.startError {
            browser.value?.failed(error, token)
            return
        }
        self.browsers[token] = browser
        self.discovery.browse(token, type: type) { [weak self] sighted in
            self?.post { await $0.sighted(sighted, by: browser, token) }
        }
    }

    /// A peer is found once the node lists it: before that it could not be invited.
    private func sighted(_ sighted: NearbyDiscovery.Sighted, by browser: WeakReference<MCNearbyServiceBrowser>, _ token: ServiceToken) async
    {
        switch sighted {
        case .found(let id, let name, let info):
            guard id != self.id else { return }
            let found = MCPeerID(id: id, displayName: name)
            self.names[id] = name
            guard await (try? self.node?.peer(id.description)) == nil else {
                browser.value?.found(found, info, token)
                return
            }
            self.unlisted[id, default: []].append((token, { browser.value?.found(found, info, token) }))
        case .lost(let id):
            guard id != self.id else { return }
            let name = self.names[id] ?? ""
            // Lost before it was told of.
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

    /// Brings the node in line with what the sessions want, and with where introduced peers are.
    func configure(_ change: (inout Node.Configuration) -> Void) async {
        var new = self.configuration
        change(&new)
        guard new.encryption != self.configuration.encryption || new.configuredPeers != self.configuration.configuredPeers else { return }
        self.configuration = new
        try? await self.node?.apply(new, changed: [], needsRestart: []) { nil }
    }

    /// A session of the program's begins.
    func open(_ token: SessionToken, _ session: WeakReference<MCSession>, _ preference: EncryptionPreference) async {
        self.sessions[token] = session
        await self.decide { $0.open(token) }
        await self.prefer(preference, token)
    }

    /// The program leaves a session, or has let go of it.
    func close(_ token: SessionToken) async {
        await self.decide { $0.close(token) }
        self.sessions[token] = nil
        await self.prefer(nil, token)
    }

    private func prefer(_ preference: EncryptionPreference?, _ token: SessionToken) async {
        self.preferences[token] = preference
        let all = Set(self.preferences.values)
        // Where they differ, each session looks at what it gets.
        let common = all.count == 1 ? all.first ?? .optional : .optional
        await self.configure { $0.encryption = common }
    }

    /// Where a peer is that discovery has not seen; nowhere any more without addresses.
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

    /// Events were lost: what matters of them is looked for.
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
