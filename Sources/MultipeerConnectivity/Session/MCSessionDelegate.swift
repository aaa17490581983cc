public import Foundation

/// The events of a session, called one after another on its private serial queue.
public protocol MCSessionDelegate: NSObjectProtocol {
    /// A peer is connecting, connected, or no longer connected.
    func session(_ session: MCSession, peer peerID: MCPeerID, didChange state: MCSessionState)

    /// A peer has sent data with ``MCSession/send(_:toPeers:with:)``, which arrives complete.
    func session(_ session: MCSession, didReceive data: Data, fromPeer peerID: MCPeerID)

    /// A peer has opened a stream. Set its delegate, schedule it and open it; or open it, and read it on a thread.
    func session(_ session: MCSession, didReceive stream: InputStream, withName streamName: String, fromPeer peerID: MCPeerID)

    /// A resource is being received. Cancelling the progress cancels the transfer on both sides.
    func session(
        _ session: MCSession, didStartReceivingResourceWithName resourceName: String, fromPeer peerID: MCPeerID, with progress: Progress)

    /// A resource has been received, or has failed. The file is deleted after this returns, unless it was moved.
    func session(
        _ session: MCSession, didFinishReceivingResourceWithName resourceName: String, fromPeer peerID: MCPeerID, at localURL: URL?,
        withError error: (any Error)?)

    /// The certificate whose key a peer has proven, one `Data` in DER; `nil` for an unencrypted connection. The peer is connected when the
    /// handler is called with `true`.
    func session(
        _ session: MCSession, didReceiveCertificate certificate: [Any]?, fromPeer peerID: MCPeerID,
        certificateHandler: @escaping (Bool) -> Void)
}

extension MCSessionDelegate {
    /// Accepts the certificate of every invited peer.
    public func session(
        _ session: MCSession, didReceiveCertificate certificate: [Any]?, fromPeer peerID: MCPeerID,
        certificateHandler: @escaping (Bool) -> Void
    ) {
        certificateHandler(true)
    }
}
