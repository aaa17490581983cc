public import Foundation
import Earshot
import Synchronization

/// What a browser finds. Called on a private serial queue of the browser's.
public protocol MCNearbyServiceBrowserDelegate: NSObjectProtocol {
    /// A peer advertises the type. What it says of itself is not proven before a session with it stands.
    func browser(_ browser: MCNearbyServiceBrowser, foundPeer peerID: MCPeerID, withDiscoveryInfo info: [String: String]?)

    /// It does so no more.
    func browser(_ browser: MCNearbyServiceBrowser, lostPeer peerID: MCPeerID)

    /// Nothing is looked for, and why.
    func browser(_ browser: MCNearbyServiceBrowser, didNotStartBrowsingForPeers error: any Error)
}

extension MCNearbyServiceBrowserDelegate {
    /// Does nothing.
    public func browser(_ browser: MCNearbyServiceBrowser, didNotStartBrowsingForPeers error: any Error) {}
}

/// Finds nearby peers that advertise a type, and invites them.
open class MCNearbyServiceBrowser: NSObject, @unchecked Sendable {
    /// Who looks.
    open var myPeerID: MCPeerID { self.ownPeer }
    /// What for, in lower case.
    open var serviceType: String { self.type }

    /// Who is told. Not held.
    open weak var delegate: (any MCNearbyServiceBrowserDelegate)? {
        get { self.listener.value }
        set { self.listener.value = newValue }
    }

    let listener = WeakReference<any MCNearbyServiceBrowserDelegate>()
    let queue = DispatchQueue(label: "earshot.multipeer.browser")
    private let ownPeer: MCPeerID
    let type: String
    private let owner: EngineOwner
    private let running = Mutex<ServiceToken?>(nil)

    /// How long an invitation is open where the program gives no time, in seconds.
    static let invitationTime: TimeInterval = 30

    /// A browser that has not started.
    ///
    /// - Parameters:
    ///   - myPeerID: this machine's own, and no peer's that was found.
    ///   - serviceType: as ``MCNearbyServiceAdvertiser/init(peer:discoveryInfo:serviceType:)`` has it.
    /// - Precondition: the type is one.
    public init(peer myPeerID: MCPeerID, serviceType: String) {
        self.ownPeer = myPeerID
        self.type = ServiceNames.checked(serviceType)
        self.owner = EngineOwner.of(myPeerID, for: "MCNearbyServiceBrowser")
        super.init()
    }

    deinit { self.stopBrowsingForPeers() }

    /// Begins to look. Without effect on one that does. Each peer is told of anew.
    open func startBrowsingForPeers() {
        let token = self.running.withLock { running -> ServiceToken? in
            guard running == nil else { return nil }
            running = ServiceToken.next()
            return running
        }
        guard let token else { return }
        let reference = WeakReference(self)
        self.owner.engine.post { $0.browse(reference, token) }
    }

    /// Ends that. Nobody is lost by it.
    open func stopBrowsingForPeers() {
        guard
            let token = self.running.withLock({ running in
                defer { running = nil }
                return running
            })
        else { return }
        self.owner.engine.post { $0.stopBrowsing(token) }
    }

    /// Asks a peer to join a session. What becomes of it is told to the session's delegate: `connecting` and `connected`, or `notConnected`.
    ///
    /// Any number may be invited at once, and two peers each other. A peer that is in the session, or on its way, is not invited again.
    /// - Parameters:
    ///   - peerID: whom to ask.
    ///   - session: where it is to come in.
    ///   - context: for the invited program's eyes: at most 8,000 bytes. With more the peer is not connected.
    ///   - timeout: how long the peer may take, in seconds, up to a day; 30 where it is 0 or less.
    open func invitePeer(_ peerID: MCPeerID, to session: MCSession, withContext context: Data?, timeout: TimeInterval) {
        let seconds = timeout > 0 ? min(timeout, 86_400) : Self.invitationTime
        let type = self.type
        let token = session.token
        session.owner.engine.post { engine in
            await engine.decide { $0.invite(peerID, to: token, .invitation(type: type, context: context), for: .seconds(seconds)) }
        }
    }

    func found(_ peer: MCPeerID, _ info: [String: String], _ token: ServiceToken) {
        self.tell(token) { $0.browser($1, foundPeer: peer, withDiscoveryInfo: info.isEmpty ? nil : info) }
    }

    func lost(_ peer: MCPeerID, _ token: ServiceToken) {
        self.tell(token) { $0.browser($1, lostPeer: peer) }
    }

    func failed(_ error: MCError, _ token: ServiceToken) {
        self.tell(token) { $0.browser($1, didNotStartBrowsingForPeers: error) }
    }

    private func tell(
        _ token: ServiceToken, _ call: @escaping @Sendable (any MCNearbyServiceBrowserDelegate, MCNearbyServiceBrowser) -> Void
    ) {
        self.queue.async { [weak self] in
            guard let self, self.running.withLock({ $0 == token }), let delegate = self.delegate else { return }
            call(delegate, self)
        }
    }
}
