public import Foundation
import Earshot
import Synchronization

/// What happens to an advertiser. Called on a private serial queue of the advertiser's.
public protocol MCNearbyServiceAdvertiserDelegate: NSObjectProtocol {
    /// A peer asks us to join it. Answer once, when that is decided: with `true` and the session that the peer is to be in, or with `false`.
    /// The inviter waits for as long as it has said.
    func advertiser(
        _ advertiser: MCNearbyServiceAdvertiser, didReceiveInvitationFromPeer peerID: MCPeerID, withContext context: Data?,
        invitationHandler: @escaping (Bool, MCSession?) -> Void)

    /// Nothing is advertised, and why.
    func advertiser(_ advertiser: MCNearbyServiceAdvertiser, didNotStartAdvertisingPeer error: any Error)
}

extension MCNearbyServiceAdvertiserDelegate {
    /// Does nothing.
    public func advertiser(_ advertiser: MCNearbyServiceAdvertiser, didNotStartAdvertisingPeer error: any Error) {}
}

/// Lets nearby peers find a peer, and receives their invitations.
open class MCNearbyServiceAdvertiser: NSObject, @unchecked Sendable {
    /// Who is advertised.
    open var myPeerID: MCPeerID { self.ownPeer }
    /// What is said beside that to everybody.
    open var discoveryInfo: [String: String]? { self.info }
    /// What kind of peers find it, in lower case.
    open var serviceType: String { self.type }

    /// Who is told. Not held.
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
    /// Which advertisement stands, where one does.
    private let running = Mutex<ServiceToken?>(nil)

    /// An advertiser that has not started.
    ///
    /// - Parameters:
    ///   - myPeerID: this machine's own, and no peer's that was found.
    ///   - info: up to 400 bytes in all are as good as certain to arrive; a pair has at most 255 bytes of UTF-8 with its `=`, and its key is 1 or more
    ///     characters of printable ASCII but `=`. See ``MCNearbyServiceAdvertiserDelegate/advertiser(_:didNotStartAdvertisingPeer:)``.
    ///   - serviceType: 1 to 15 of `a-z`, `0-9` and `-`, with a letter, no hyphen at either end or doubled; capitals are lowered.
    /// - Precondition: the type is one.
    public init(peer myPeerID: MCPeerID, discoveryInfo info: [String: String]?, serviceType: String) {
        self.ownPeer = myPeerID
        self.info = info
        self.type = ServiceNames.checked(serviceType)
        self.owner = EngineOwner.of(myPeerID, for: "MCNearbyServiceAdvertiser")
        super.init()
    }

    deinit { self.stopAdvertisingPeer() }

    /// Begins to advertise. Without effect on one that does.
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

    /// Ends that. Invitations that have come may still be answered.
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

    /// Asks the program; `answer` is called once, at most.
    func ask(_ peer: MCPeerID, _ context: Data?, answer: @escaping @Sendable (Bool, MCSession?) -> Void) {
        let once = Once()
        let guarded: @Sendable (Bool, MCSession?) -> Void = { isAccepted, session in if once.first() { answer(isAccepted, session) } }
        self.queue.async { [weak self] in
            guard let self, let delegate = self.delegate else { return guarded(false, nil) }
            delegate.advertiser(self, didReceiveInvitationFromPeer: peer, withContext: context, invitationHandler: guarded)
        }
    }
}
