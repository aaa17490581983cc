public import Foundation
import Earshot
import Synchronization

/// A session in which peers exchange data, streams and resources. It has up to eight peers including the local one, each connected to all
/// others.
///
/// A session has neither a name nor an owner. Peers join by invitation (``MCNearbyServiceBrowser``, ``MCNearbyServiceAdvertiser``). A new
/// peer is introduced to the others, and connects to them without further questions. The delegate receives all events, on a private serial
/// queue.
open class MCSession: NSObject, @unchecked Sendable {
    /// The local peer.
    open var myPeerID: MCPeerID { self.ownPeer }
    /// The security identity: always `nil` or empty, because Apple's identities do not exist here.
    open var securityIdentity: [Any]? { self.identities }
    /// The encryption of the session's connections.
    open var encryptionPreference: MCEncryptionPreference { self.preference }

    /// The delegate, a weak reference.
    open weak var delegate: (any MCSessionDelegate)? {
        get { self.listener.value }
        set { self.listener.value = newValue }
    }

    /// The connected peers.
    open var connectedPeers: [MCPeerID] { self.state.withLock { $0.connected } }

    // Stored separately, so that a subclass that overrides the properties only affects the program.
    private let ownPeer: MCPeerID
    private let identities: [Any]?
    private let preference: MCEncryptionPreference
    let listener = WeakReference<any MCSessionDelegate>()
    let queue = DispatchQueue(label: "earshot.multipeer.session")
    let owner: EngineOwner

    private struct State {
        var token = SessionToken.next()
        var connected: [MCPeerID] = []
        /// Bytes sent and not yet acknowledged, by peer.
        var unacknowledged: [PeerID: Int] = [:]
    }

    private let state = Mutex(State())
    /// Held by a sender of data until the node has accepted all of it.
    let turn = Mutex(())

    /// Creates a session with encrypted connections.
    /// - Precondition: As for ``init(peer:securityIdentity:encryptionPreference:)``.
    public convenience init(peer myPeerID: MCPeerID) {
        self.init(peer: myPeerID, securityIdentity: nil, encryptionPreference: .required)
    }

    /// Creates a session without other peers.
    ///
    /// - Precondition: The peer is a local one: it was neither found by a browser nor decoded on a machine without its key. `identity` is
    ///   `nil` or empty, because there is no `SecIdentity` here.
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

    /// Leaves the session, which can then be used for new invitations. No callback begins after this returns. The other peers learn that
    /// the local one is not connected.
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

    /// Sends data to peers of the session, and returns when the node has accepted it.
    ///
    /// - Parameters:
    ///   - data: Up to 64 MiB; up to 1 MiB if `mode` is `unreliable`.
    ///   - peerIDs: One or more connected peers.
    ///   - mode: `reliable` data arrives complete and in order, while the peer is connected. `unreliable` data is sent immediately or lost.
    /// - Throws: ``MCError/Code/invalidParameter`` for no peer or too much data; ``MCError/Code/notConnected`` if one of the peers is not;
    ///   ``MCError/Code/unavailable`` while a peer has not yet taken 64 MiB of earlier data. If the call throws, it sends nothing.
    open func send(_ data: Data, toPeers peerIDs: [MCPeerID], with mode: MCSessionSendDataMode) throws {
        try self.sendData(data, to: peerIDs, mode)
    }

    /// Creates a stream to a peer. Open it, write, and close it. The peer reads to the end. The stream accepts up to 256 KiB before the
    /// peer has read any.
    ///
    /// - Throws: ``MCError/Code/notConnected``; ``MCError/Code/invalidParameter`` for a name that is empty or longer than 255 bytes. If
    ///   the peer is lost or refuses the stream, the stream has a `streamError`.
    open func startStream(withName streamName: String, toPeer peerID: MCPeerID) throws -> OutputStream {
        try self.openStream(named: streamName, to: peerID)
    }

    /// Sends the file or the directory at a URL to a peer.
    ///
    /// - Parameters:
    ///   - resourceURL: A file URL; others are ``MCError/Code/unsupported``.
    ///   - resourceName: A file name of at most 255 bytes: no slash, neither `.` nor `..`.
    ///   - peerID: The recipient.
    ///   - completionHandler: Called on the session's queue when the peer has received everything, or with the error.
    /// - Returns: The progress, which is a child of the current progress. Cancelling it cancels the transfer on both sides. `nil` if the
    ///   peer is not connected; the handler is called in this case too.
    @discardableResult
    open func sendResource(
        at resourceURL: URL, withName resourceName: String, toPeer peerID: MCPeerID,
        withCompletionHandler completionHandler: (((any Error)?) -> Void)? = nil
    ) -> Progress? {
        self.sendFile(at: resourceURL, named: resourceName, to: peerID, completionHandler)
    }

    // MARK: Connecting peers by other means

    /// Returns the data with which another machine's program can connect `peerID` to this peer, with
    /// ``connectPeer(_:withNearbyConnectionData:)``: the peer id and its addresses. The data is not secret. Both programs have to exchange
    /// their data, and both have to connect.
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

    /// Returns the connection data asynchronously.
    /// - Throws: ``MCError/Code/unavailable``.
    open func nearbyConnectionData(forPeer peerID: MCPeerID) async throws -> Data {
        try await withCheckedThrowingContinuation { continuation in
            self.nearbyConnectionData(forPeer: peerID) { data, error in
                if let data { continuation.resume(returning: data) } else { continuation.resume(throwing: error ?? MCError(.unknown)) }
            }
        }
    }

    /// Connects to a peer with connection data that the program has received by its own means. The peer's program must do the same with
    /// this peer's data, within 30 s. If the data belongs to another peer or is invalid, the result is `notConnected`.
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

    // MARK: Calls from the engine

    /// The identifier of the session since its creation or last `disconnect()`.
    var token: SessionToken { self.state.withLock { $0.token } }

    /// Returns whether the session may use a connection with this protection.
    func allows(_ protection: Protection?) -> Bool {
        switch self.preference {
        case .required: protection == .encrypted
        case .none: protection == .unprotected
        case .optional: true
        }
    }

    /// Reports a peer's state to the delegate.
    func tell(_ token: SessionToken, _ peer: MCPeerID, _ new: MCSessionState) {
        let isCurrent = self.state.withLock { state in
            guard state.token == token else { return false }
            state.connected.removeAll { $0.id == peer.id }
            if new == .connected { state.connected.append(peer) } else { state.unacknowledged[peer.id] = nil }
            return true
        }
        if isCurrent { self.call(token) { $1.session($0, peer: peer, didChange: new) } }
    }

    /// Asks the delegate about a certificate. Without a delegate, the certificate is accepted.
    func check(_ token: SessionToken, _ peer: MCPeerID, _ certificate: Data?, answer: @escaping @Sendable (Bool) -> Void) {
        let once = Once()
        let guarded: @Sendable (Bool) -> Void = { isGood in if once.first() { answer(isGood) } }
        self.queue.async { [weak self] in
            guard let self, self.token == token, let delegate = self.delegate else { return guarded(true) }
            delegate.session(self, didReceiveCertificate: certificate.map { [$0] }, fromPeer: peer, certificateHandler: guarded)
        }
    }

    /// Calls the delegate, unless the session was disconnected. Calls `then` in any case.
    func call(
        _ token: SessionToken, then: (@Sendable () -> Void)? = nil, _ call: @escaping @Sendable (MCSession, any MCSessionDelegate) -> Void
    ) {
        self.queue.async { [weak self] in
            if let self, self.token == token, let delegate = self.delegate { call(self, delegate) }
            then?()
        }
    }

    /// Returns whether a peer is connected.
    func isConnected(_ peer: MCPeerID) -> Bool { self.state.withLock { $0.connected.contains { $0.id == peer.id } } }

    /// Reserves the bytes of a call for its peers. Reserves nothing and throws if one of them has too many unacknowledged bytes.
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

    /// Releases reserved bytes that a peer has taken.
    func release(_ bytes: Int, of peer: PeerID, _ token: SessionToken) {
        self.state.withLock { state in
            guard state.token == token, let held = state.unacknowledged[peer] else { return }
            state.unacknowledged[peer] = max(0, held - bytes)
        }
    }
}

extension MCEncryptionPreference {
    /// The corresponding preference of Earshot.
    var own: EncryptionPreference {
        switch self {
        case .optional: .optional
        case .required: .required
        case .none: .none
        }
    }
}
