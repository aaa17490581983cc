public import Foundation

/// What happens in a session. Called on a private serial queue of the session's, one after the other.
public protocol MCSessionDelegate: NSObjectProtocol {
    /// A peer is connecting, connected, or not connected any more.
    func session(_ session: MCSession, peer peerID: MCPeerID, didChange state: MCSessionState)

    /// Data that a peer has sent by ``MCSession/send(_:toPeers:with:)``, whole.
    func session(_ session: MCSession, didReceive data: Data, fromPeer peerID: MCPeerID)

    /// A peer has opened a stream. Set its delegate, schedule it and open it; or open it, and read it on a thread.
    func session(_ session: MCSession, didReceive stream: InputStream, withName streamName: String, fromPeer peerID: MCPeerID)

    /// A resource is coming. Cancelling the progress cancels it on both sides.
    func session(
        _ session: MCSession, didStartReceivingResourceWithName resourceName: String, fromPeer peerID: MCPeerID, with progress: Progress)

    /// A resource is there, or will not come. The file is gone after this returns, unless it was moved away.
    func session(
        _ session: MCSession, didFinishReceivingResourceWithName resourceName: String, fromPeer peerID: MCPeerID, at localURL: URL?,
        withError error: (any Error)?)

    /// The certificate that a peer has proven to have the key of, one `Data` in DER; none for an unencrypted connection. The peer is connected once the
    /// handler is called with `true`.
    func session(
        _ session: MCSession, didReceiveCertificate certificate: [Any]?, fromPeer peerID: MCPeerID,
        certificateHandler: @escaping (Bool) -> Void)
}

extension MCSessionDelegate {
    /// Whoever was invited and has accepted is in.
    public func session(
        _ session: MCSession, didReceiveCertificate certificate: [Any]?, fromPeer peerID: MCPeerID,
        certificateHandler: @escaping (Bool) -> Void
    ) {
        certificateHandler(true)
    }
}
