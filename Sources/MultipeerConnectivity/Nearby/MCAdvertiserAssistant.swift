public import Foundation
import Synchronization

/// The events of an assistant.
public protocol MCAdvertiserAssistantDelegate: NSObjectProtocol {
    /// Called before the program is asked about an invitation.
    func advertiserAssistantWillPresentInvitation(_ advertiserAssistant: MCAdvertiserAssistant)
    /// Called when the program has answered.
    func advertiserAssistantDidDismissInvitation(_ advertiserAssistant: MCAdvertiserAssistant)
}

extension MCAdvertiserAssistantDelegate {
    /// Does nothing.
    public func advertiserAssistantWillPresentInvitation(_ advertiserAssistant: MCAdvertiserAssistant) {}
    /// Does nothing.
    public func advertiserAssistantDidDismissInvitation(_ advertiserAssistant: MCAdvertiserAssistant) {}
}

/// Advertises a session, and lets the program's handler decide about invitations instead of Apple's dialogue. Without a handler,
/// invitations are declined.
open class MCAdvertiserAssistant: NSObject, @unchecked Sendable {
    /// Called for each invitation with the inviter's context. The handler calls `answer` with whether the peer may join.
    public typealias InvitationHandler =
        @Sendable (_ peer: MCPeerID, _ context: Data?, _ answer: @escaping @Sendable (Bool) -> Void) -> Void

    /// The session that peers join.
    open var session: MCSession { self.target.session }
    /// The advertised information.
    open var discoveryInfo: [String: String]? { self.advertiser.discoveryInfo }
    /// The advertised service type.
    open var serviceType: String { self.advertiser.serviceType }

    /// The delegate, a weak reference.
    open weak var delegate: (any MCAdvertiserAssistantDelegate)? {
        get { self.listener.value }
        set { self.listener.value = newValue }
    }

    /// The handler that decides about invitations; initially `nil`. Called on a private serial queue.
    open var invitationHandler: InvitationHandler? {
        get { self.handler.withLock { $0 } }
        set { self.handler.withLock { $0 = newValue } }
    }

    private let listener = WeakReference<any MCAdvertiserAssistantDelegate>()
    private let handler = Mutex<InvitationHandler?>(nil)
    private let advertiser: MCNearbyServiceAdvertiser
    private let target: Target

    /// Creates an assistant that has not started; see ``MCNearbyServiceAdvertiser/init(peer:discoveryInfo:serviceType:)``.
    public init(serviceType: String, discoveryInfo info: [String: String]?, session: MCSession) {
        self.target = Target(session)
        self.advertiser = MCNearbyServiceAdvertiser(peer: session.myPeerID, discoveryInfo: info, serviceType: serviceType)
        super.init()
        self.target.assistant.value = self
        self.advertiser.delegate = self.target
    }

    /// Starts advertising.
    open func start() { self.advertiser.startAdvertisingPeer() }

    /// Stops advertising.
    open func stop() { self.advertiser.stopAdvertisingPeer() }

    fileprivate func ask(_ peer: MCPeerID, _ context: Data?, _ answer: @escaping @Sendable (Bool, MCSession?) -> Void) {
        guard let handler = self.invitationHandler else { return answer(false, nil) }
        self.delegate?.advertiserAssistantWillPresentInvitation(self)
        handler(peer, context) { [self] isAccepted in
            answer(isAccepted, isAccepted ? self.target.session : nil)
            self.advertiser.queue.async { self.delegate?.advertiserAssistantDidDismissInvitation(self) }
        }
    }

    /// The advertiser's delegate. A separate object, because programs subclass the assistant.
    private final class Target: NSObject, MCNearbyServiceAdvertiserDelegate, @unchecked Sendable {
        let session: MCSession
        let assistant = WeakReference<MCAdvertiserAssistant>()

        init(_ session: MCSession) { self.session = session }

        func advertiser(
            _ advertiser: MCNearbyServiceAdvertiser, didReceiveInvitationFromPeer peerID: MCPeerID, withContext context: Data?,
            invitationHandler: @escaping (Bool, MCSession?) -> Void
        ) {
            guard let assistant = self.assistant.value else { return invitationHandler(false, nil) }
            nonisolated(unsafe) let handler = invitationHandler
            assistant.ask(peerID, context) { handler($0, $1) }
        }
    }
}
