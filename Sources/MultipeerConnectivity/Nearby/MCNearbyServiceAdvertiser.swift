public import Foundation
import Earshot
import Synchronization

/// The events of an advertiser, called on its private serial queue.
public protocol MCNearbyServiceAdvertiserDelegate: NSObjectProtocol {
    /// A peer invites the local peer. Call the handler once, with `true` and the session for the peer, or with `false`. The inviter waits
    /// until its own timeout.
    func advertiser(
        _ advertiser: MCNearbyServiceAdvertiser, didReceiveInvitationFromPeer peerID: MCPeerID, withContext context: Data?,
        invitationHandler: @escaping (Bool, MCSession?) -> Void)

    /// Advertising has failed.
    func advertiser(_ advertiser: MCNearbyServiceAdvertiser, didNotStartAdvertisingPeer error: any Error)
}

extension MCNearbyServiceAdvertiserDelegate {
    /// Does nothing.
    public func advertiser(_ advertiser: MCNearbyServiceAdvertiser, didNotStartAdvertisingPeer error: any Error) {}
}

/// Lets nearby peers find a peer, and receives their invitations.
open class MCNearbyServiceAdvertiser: NSObject, @unchecked Sendable {
    /// The advertised peer.
    open var myPeerID: MCPeerID { self.ownPeer }
    /// The additional information that is advertised.
    open var discoveryInfo: [String: String]? { self.info }
    /// The advertised service type, in lower case.
    open var serviceType: String { self.type }

    /// The delegate, a weak reference.
    open weak var delegate: (any MCNearbyServiceAdvertiserDelegate)? {
        get { self.listener.value }
        set { self.listener.value = newValue }
    }

    let listener = WeakReference<any MCNearbyServiceAdvertiserDelegate>()
    let queue = DispatchQueue(label: "earshot.multipeer.advertiser")
    private let ownPeer: MCPeerID
    private let info: [String: String]?
    let type: String
    private let owner: EngineOwner
    /// The identifier of the current advertisement.
    private let running = Mutex<ServiceToken?>(nil)

    /// Creates an advertiser that has not started.
    ///
    /// - Parameters:
    ///   - myPeerID: A peer of this machine, not one that was found.
    ///   - info: Additional information. Up to 400 bytes in all can be expected to arrive. A pair has at most 255 bytes of UTF-8 with its
    ///     `=`, and its key is 1 or more characters of printable ASCII except `=`. See
    ///     ``MCNearbyServiceAdvertiserDelegate/advertiser(_:didNotStartAdvertisingPeer:)``.
    ///   - serviceType: 1 to 15 of `a-z`, `0-9` and `-`, with a letter, no hyphen at either end or doubled; capitals are lowered.
    /// - Precondition: The service type is valid.
    public init(peer myPeerID: MCPeerID, discoveryInfo info: [String: String]?, serviceType: String) {
        self.ownPeer = myPeerID
        self.info = info
        self.type = ServiceNames.checked(serviceType)
        self.owner = EngineOwner.of(myPeerID, for: "MCNearbyServiceAdvertiser")
        super.init()
    }

    deinit { self.stopAdvertisingPeer() }

    /// Starts advertising, unless it is already started.
    open func startAdvertisingPeer() {
        let token = self.running.withLock { running -> ServiceToken? in
            guard running == nil else { return nil }
            running = ServiceToken.next()
            return running
        }
        guard let token else { return }
        let pairs: [TXTPair]
        do throws(MCError) {
            pairs = try ServiceNames.pairs(of: self.info ?? [:])
        } catch {
            self.running.withLock { $0 = nil }
            return self.failed(error)
        }
        let reference = WeakReference(self)
        self.owner.engine.post { engine in
            engine.advertise(reference, token, pairs)
        }
    }

    /// Stops advertising. Received invitations can still be answered.
    open func stopAdvertisingPeer() {
        guard
            let token = self.running.withLock({ running in
                defer { running = nil }
                return running
            })
        else { return }
        self.owner.engine.post { $0.stopAdvertising(token) }
    }

    func failed(_ error: MCError) {
        self.queue.async { [weak self] in
            guard let self else { return }
            self.delegate?.advertiser(self, didNotStartAdvertisingPeer: error)
        }
    }

    /// Asks the program. `answer` is called at most once.
    func ask(_ peer: MCPeerID, _ context: Data?, answer: @escaping @Sendable (Bool, MCSession?) -> Void) {
        let once = Once()
        let guarded: @Sendable (Bool, MCSession?) -> Void = { isAccepted, session in if once.first() { answer(isAccepted, session) } }
        self.queue.async { [weak self] in
            guard let self, let delegate = self.delegate else { return guarded(false, nil) }
            delegate.advertiser(self, didReceiveInvitationFromPeer: peer, withContext: context, invitationHandler: guarded)
        }
    }
}
