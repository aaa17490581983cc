public import Foundation
import Earshot
import Synchronization

/// Peers that exchange data, streams and resources: up to eight, ourselves included, each connected with each.
///
/// It has no name and no owner. Peers come in by invitation (``MCNearbyServiceBrowser``, ``MCNearbyServiceAdvertiser``); who joins is introduced to the
/// others, and connects with them without being asked again. Everything that happens is told to the delegate, on a private serial queue.
open class MCSession: NSObject, @unchecked Sendable {
    /// Who we are in it.
    open var myPeerID: MCPeerID { self.ownPeer }
    /// Apple's identities are not there: always `nil` or empty.
    open var securityIdentity: [Any]? { self.identities }
    /// What it wants of its connections.
    open var encryptionPreference: MCEncryptionPreference { self.preference }

    /// Who is told of everything. Not held.
    open weak var delegate: (any MCSessionDelegate)? {
        get { self.listener.value }
        set { self.listener.value = newValue }
    }

    /// Who is connected now.
    open var connectedPeers: [MCPeerID] { self.state.withLock { $0.connected } }

    // What a subclass says in place of these is for the program alone.
    private let ownPeer: MCPeerID
    private let identities: [Any]?
    private let preference: MCEncryptionPreference
    let listener = WeakReference<any MCSessionDelegate>()
    let queue = DispatchQueue(label: "earshot.multipeer.session")
    let owner: EngineOwner

    private struct State {
        var token = SessionToken.next()
        var connected: [MCPeerID] = []
        /// Bytes that were sent and not taken yet.
        var unacknowledged: [PeerID: Int] = [:]
    }

    private let state = Mutex(State())
    /// Held by whoever sends data, until the node has all of it.
    let turn = Mutex(())

    /// A session whose connections are encrypted.
    /// - Precondition: as for ``init(peer:securityIdentity:encryptionPreference:)``.
    public convenience init(peer myPeerID: MCPeerID) {
        self.init(peer: myPeerID, securityIdentity: nil, encryptionPreference: .required)
    }

    /// A session that nobody is in yet.
    ///
    /// - Precondition: the peer is our own, and no one that was found or unarchived without its key; `identity` is `nil` or empty: there is no
    ///   `SecIdentity` here.
    public init(peer myPeerID: MCPeerID, securityIdentity identity: [Any]?, encryptionPreference: MCEncryptionPreference) {
        guard identity?.isEmpty != false else {
            preconditionFailure("MCSession: there is no SecIdentity on this system; securityIdentity is nil or empty")
        }
        self.ownPeer = myPeerID
        self.identities = identity
        self.preference = encryptionPreference
        self.owner = EngineOwner.of(myPeerID, for: "MCSession")
        super.init()
        let (token, reference) = (self.token, WeakReference(self))
        let preference = encryptionPreference.own
        self.owner.engine.post { await $0.open(token, reference, preference) }
    }

    deinit {
        let token = self.token
        self.owner.engine.post { await $0.close(token) }
    }

    /// Leaves, and is ready for new invitations. No callback begins after this returns; the others hear that we are not connected.
    open func disconnect() {
        let (old, new) = self.state.withLock { state in
            let old = state.token
            state.token = SessionToken.next()
            state.connected = []
            state.unacknowledged = [:]
            return (old, state.token)
        }
        let (preference, reference) = (self.preference.own, WeakReference(self))
        self.owner.engine.post { engine in
            await engine.close(old)
            await engine.open(new, reference, preference)
        }
    }

    // MARK: Sending

    /// Sends data to peers of the session, and returns when it is on its way.
    ///
    /// - Parameters:
    ///   - data: up to 64 MiB; up to 1 MiB where `mode` is `unreliable`.
    ///   - peerIDs: one or more, each connected.
    ///   - mode: `reliable` data arrives whole and in order, for as long as the peer is connected; `unreliable` data now or never.
    /// - Throws: ``MCError/Code/invalidParameter`` for nobody or too much; ``MCError/Code/notConnected`` where one of the peers is not;
    ///   ``MCError/Code/unavailable`` while a peer has 64 MiB to take of what was sent before. Nothing is sent then.
    open func send(_ data: Data, toPeers peerIDs: [MCPeerID], with mode: MCSessionSendDataMode) throws {
        try self.sendData(data, to: peerIDs, mode)
    }

    /// Opens a stream to a peer. Open it, write, and close it: the peer reads to the end. It takes up to 256 KiB before the peer has read any.
    ///
    /// - Throws: ``MCError/Code/notConnected``; ``MCError/Code/invalidParameter`` for a name that is empty or longer than 255 bytes. A peer that is lost, or
    ///   that does not want the stream, shows as its `streamError`.
    open func startStream(withName streamName: String, toPeer peerID: MCPeerID) throws -> OutputStream {
        try self.openStream(named: streamName, to: peerID)
    }

    /// Sends the file, or the directory, at a URL to a peer, under a name.
    ///
    /// - Parameters:
    ///   - resourceURL: of a file; others are ``MCError/Code/unsupported``.
    ///   - resourceName: of at most 255 bytes, and the name of a file: no slash, neither `.` nor `..`.
    ///   - peerID: who is to have it.
    ///   - completionHandler: called on the session's queue when the peer has all of it, or with why it has not.
    /// - Returns: how far it is; cancelling it cancels it on both sides. It is a child of the progress that is current. `nil` where the peer is not
    ///   connected; the handler is called then too.
    @discardableResult
    open func sendResource(
        at resourceURL: URL, withName resourceName: String, toPeer peerID: MCPeerID,
        withCompletionHandler completionHandler: (((any Error)?) -> Void)? = nil
    ) -> Progress? {
        self.sendFile(at: resourceURL, named: resourceName, to: peerID, completionHandler)
    }

    // MARK: Bringing peers together by other means

    /// What another machine's program needs to connect `peerID` with us by ``connectPeer(_:withNearbyConnectionData:)``: who we are, and where. It holds
    /// no secret. Both sides have to bring each other the other's, and to connect.
    open func nearbyConnectionData(
        forPeer peerID: MCPeerID, withCompletionHandler completionHandler: @escaping @Sendable (Data?, (any Error)?) -> Void
    ) {
        let queue = self.queue
        self.owner.engine.post { engine in
            do {
                let data = try await engine.connectionData()
                queue.async { completionHandler(data, nil) }
            } catch {
                queue.async { completionHandler(nil, error) }
            }
        }
    }

    /// The same for a caller that waits.
    /// - Throws: ``MCError/Code/unavailable``.
    open func nearbyConnectionData(forPeer peerID: MCPeerID) async throws -> Data {
        try await withCheckedThrowingContinuation { continuation in
            self.nearbyConnectionData(forPeer: peerID) { data, error in
                if let data { continuation.resume(returning: data) } else { continuation.resume(throwing: error ?? MCError(.unknown)) }
            }
        }
    }

    /// Connects to a peer whose connection data the program has got by means of its own; the peer's program must do the same with ours, within 30 s.
    /// Data of another peer, or that is none, comes to nothing: `notConnected`.
    open func connectPeer(_ peerID: MCPeerID, withNearbyConnectionData data: Data) {
        let token = self.token
        self.owner.engine.post { engine in
            guard let place = try? ConnectionData(data), place.id == peerID.id else { return self.tell(token, peerID, .notConnected) }
            await engine.decide { $0.bringTogether(peerID, at: place.addresses, in: token) }
        }
    }

    /// Ends the attempt to connect to a peer, or its connection.
    open func cancelConnectPeer(_ peerID: MCPeerID) {
        let token = self.token
        self.owner.engine.post { await $0.decide { $0.leave(peerID.id, of: token) } }
    }

    // MARK: For the engine

    /// Which session it is, since it was made or last disconnected.
    var token: SessionToken { self.state.withLock { $0.token } }

    /// Whether it may have a connection like that.
    func allows(_ protection: Protection?) -> Bool {
        switch self.preference {
        case .required: protection == .encrypted
        case .none: protection == .unprotected
        case .optional: true
        }
    }

    /// Tells the delegate of a peer's state.
    func tell(_ token: SessionToken, _ peer: MCPeerID, _ new: MCSessionState) {
        let isCurrent = self.state.withLock { state in
            guard state.token == token else { return false }
            state.connected.removeAll { $0.id == peer.id }
            if new == .connected { state.connected.append(peer) } else { state.unacknowledged[peer.id] = nil }
            return true
        }
        if isCurrent { self.call(token) { $1.session($0, peer: peer, didChange: new) } }
    }

    /// Asks the delegate about a certificate; whoever is connected without a delegate is in.
    func check(_ token: SessionToken, _ peer: MCPeerID, _ certificate: Data?, answer: @escaping @Sendable (Bool) -> Void) {
        let once = Once()
        let guarded: @Sendable (Bool) -> Void = { isGood in if once.first() { answer(isGood) } }
        self.queue.async { [weak self] in
            guard let self, self.token == token, let delegate = self.delegate else { return guarded(true) }
            delegate.session(self, didReceiveCertificate: certificate.map { [$0] }, fromPeer: peer, certificateHandler: guarded)
        }
    }

    /// Calls the delegate, unless the session has been disconnected; `then` in any case.
    func call(
        _ token: SessionToken, then: (@Sendable () -> Void)? = nil, _ call: @escaping @Sendable (MCSession, any MCSessionDelegate) -> Void
    ) {
        self.queue.async { [weak self] in
            if let self, self.token == token, let delegate = self.delegate { call(self, delegate) }
            then?()
        }
    }

    /// Whether a peer is connected now, and the session the same.
    func isConnected(_ peer: MCPeerID) -> Bool { self.state.withLock { $0.connected.contains { $0.id == peer.id } } }

    /// Sets aside what is about to be sent to peers; none of it where one has too much under way.
    func reserve(_ bytes: Int, for peers: [MCPeerID]) throws -> SessionToken {
        try self.state.withLock { state in
            for peer in peers {
                guard state.connected.contains(where: { $0.id == peer.id }) else {
                    throw MCError(.notConnected, "\(peer.displayName) is not connected")
                }
                guard state.unacknowledged[peer.id, default: 0] + bytes <= OutgoingData.limit else {
                    throw MCError(.unavailable, "\(peer.displayName) has not taken what was sent before")
                }
            }
            for peer in peers { state.unacknowledged[peer.id, default: 0] += bytes }
            return state.token
        }
    }

    /// A peer has taken what was set aside.
    func release(_ bytes: Int, of peer: PeerID, _ token: SessionToken) {
        self.state.withLock { state in
            guard state.token == token, let held = state.unacknowledged[peer] else { return }
            state.unacknowledged[peer] = max(0, held - bytes)
        }
    }
}

extension MCEncryptionPreference {
    /// The same in Earshot's words.
    var own: EncryptionPreference {
        switch self {
        case .optional: .optional
        case .required: .required
        case .none: .none
        }
    }
}
