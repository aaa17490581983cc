import MultipeerConnectivity

final class Chat: NSObject, MCSessionDelegate, MCNearbyServiceAdvertiserDelegate, MCNearbyServiceBrowserDelegate {
    private let session: MCSession
    private let advertiser: MCNearbyServiceAdvertiser
    private let browser: MCNearbyServiceBrowser

    init(name: String, room: String) {
        let me = MCPeerID(displayName: name)
        self.session = MCSession(peer: me)
        self.advertiser = MCNearbyServiceAdvertiser(peer: me, discoveryInfo: nil, serviceType: room)
        self.browser = MCNearbyServiceBrowser(peer: me, serviceType: room)
        super.init()
        self.session.delegate = self
        self.advertiser.delegate = self
        self.browser.delegate = self
        self.advertiser.startAdvertisingPeer()
        self.browser.startBrowsingForPeers()
    }

    func say(_ line: String) {
        do {
            try self.session.send(Data(line.utf8), toPeers: self.session.connectedPeers, with: .reliable)
        } catch {
            self.show("(nobody has heard that: \(error.localizedDescription))")
        }
    }

    // Each program invites every peer that it finds and accepts every invitation, so that all programs share one session.

    func browser(_ browser: MCNearbyServiceBrowser, foundPeer peerID: MCPeerID, withDiscoveryInfo info: [String: String]?) {
        browser.invitePeer(peerID, to: self.session, withContext: nil, timeout: 10)
    }

    func browser(_ browser: MCNearbyServiceBrowser, lostPeer peerID: MCPeerID) {}

    func advertiser(
        _ advertiser: MCNearbyServiceAdvertiser, didReceiveInvitationFromPeer peerID: MCPeerID, withContext context: Data?,
        invitationHandler: @escaping (Bool, MCSession?) -> Void
    ) {
        invitationHandler(true, self.session)
    }

    func session(_ session: MCSession, peer peerID: MCPeerID, didChange state: MCSessionState) {
        switch state {
        case .connected: self.show("* \(peerID.displayName) is here")
        case .notConnected: self.show("* \(peerID.displayName) is not here")
        case .connecting: break
        }
    }

    func session(_ session: MCSession, didReceive data: Data, fromPeer peerID: MCPeerID) {
        self.show("\(peerID.displayName): \(String(decoding: data, as: UTF8.self))")
    }

    // This chat has no streams and no files.

    func session(_ session: MCSession, didReceive stream: InputStream, withName streamName: String, fromPeer peerID: MCPeerID) {}

    func session(
        _ session: MCSession, didStartReceivingResourceWithName resourceName: String, fromPeer peerID: MCPeerID, with progress: Progress
    ) {}

    func session(
        _ session: MCSession, didFinishReceivingResourceWithName resourceName: String, fromPeer peerID: MCPeerID, at localURL: URL?,
        withError error: (any Error)?
    ) {}

    /// Prints a line immediately. Text from another machine may contain control sequences for the terminal.
    private func show(_ line: String) {
        let safe = line.unicodeScalars.map { $0.properties.generalCategory == .control ? "?" : $0 }
        FileHandle.standardOutput.write(Data("\(String(String.UnicodeScalarView(safe)))\n".utf8))
    }
}

@main
struct Main {
    static func main() {
        guard CommandLine.arguments.count == 3 else { return print("usage: multipeer-chat NAME ROOM") }
        let chat = Chat(name: CommandLine.arguments[1], room: CommandLine.arguments[2])
        while let line = readLine() { chat.say(line) }
    }
}
