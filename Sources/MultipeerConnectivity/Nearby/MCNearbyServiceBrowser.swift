public import Foundation
import Earshot
import Synchronization

/// The events of a browser, called on its private serial queue.
public protocol MCNearbyServiceBrowserDelegate: NSObjectProtocol {
    /// A peer advertises the service type. Its data is not proven before there is a session with it.
    func browser(_ browser: MCNearbyServiceBrowser, foundPeer peerID: MCPeerID, withDiscoveryInfo info: [String: String]?)

    /// A found peer is no longer advertised.
    func browser(_ browser: MCNearbyServiceBrowser, lostPeer peerID: MCPeerID)

    /// Browsing has failed.
    func browser(_ browser: MCNearbyServiceBrowser, didNotStartBrowsingForPeers error: any Error)
}

extension MCNearbyServiceBrowserDelegate {
    /// Does nothing.
    public func browser(_ browser: MCNearbyServiceBrowser, didNotStartBrowsingForPeers error: any Error) {}
}

/// Finds nearby peers that advertise a service type, and invites them.
open class MCNearbyServiceBrowser: NSObject, @unchecked Sendable {
    /// The local peer.
    open var myPeerID: MCPeerID { self.ownPeer }
    /// The service type to search for, in lower case.
    open var serviceType: String { self.type }

    /// The delegate, a weak reference.
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

    /// The default timeout of an invitation, in seconds.
    static let invitationTime: TimeInterval = 30

    /// Creates a browser that has not started.
    ///
    /// - Parameters:
    ///   - myPeerID: A peer of this machine, not one that was found.
    ///   - serviceType: As for ``MCNearbyServiceAdvertiser/init(peer:discoveryInfo:serviceType:)``.
    /// - Precondition: The service type is valid.
    public init(peer myPeerID: MCPeerID, serviceType: String) {
        self.ownPeer = myPeerID
        self.type = ServiceNames.checked(serviceType)
        self.owner = EngineOwner.of(myPeerID, for: "MCNearbyServiceBrowser")
        super.init()
    }

    deinit { self.stopBrowsingForPeers() }

    /// Starts browsing, unless it is already started. Every peer is reported again.
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

    /// Stops browsing. No peer is reported as lost.
    open func stopBrowsingForPeers() {
        guard
            let token = self.running.withLock({ running in
                defer { running = nil }
                return running
            })
        else { return }
        self.owner.engine.post { $0.stopBrowsing(token) }
    }

    /// Invites a peer to a session. The session's delegate receives the result: `connecting` and `connected`, or `notConnected`.
    ///
    /// Any number of peers may be invited at once, and two peers may invite each other. A peer that is in the session or is joining is not
    /// invited again.
    /// - Parameters:
    ///   - peerID: The peer to invite.
    ///   - session: The session for the peer.
    ///   - context: Data for the invited program, at most 8,000 bytes. If it is longer, the session's delegate receives `notConnected`.
    ///   - timeout: The time in which the peer may answer, in seconds, up to a day; 30 if it is 0 or less.
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
