import MultipeerConnectivity

final class Share: NSObject, MCSessionDelegate, MCNearbyServiceAdvertiserDelegate, MCNearbyServiceBrowserDelegate {
    private let session: MCSession
    private let advertiser: MCNearbyServiceAdvertiser
    private let browser: MCNearbyServiceBrowser
    private let file: URL

    init(name: String, file: URL) {
        let me = MCPeerID(displayName: name)
        self.file = file
        self.session = MCSession(peer: me)
        self.advertiser = MCNearbyServiceAdvertiser(peer: me, discoveryInfo: ["file": file.lastPathComponent], serviceType: "share")
        self.browser = MCNearbyServiceBrowser(peer: me, serviceType: "share")
        super.init()
        self.session.delegate = self
        self.advertiser.delegate = self
        self.browser.delegate = self
        self.advertiser.startAdvertisingPeer()
        self.browser.startBrowsingForPeers()
    }

    func browser(_ browser: MCNearbyServiceBrowser, foundPeer peerID: MCPeerID, withDiscoveryInfo info: [String: String]?) {
        Self.show("\(peerID.displayName) offers \(info?["file"] ?? "nothing")")
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
        guard state == .connected else { return }
        session.sendResource(at: self.file, withName: self.file.lastPathComponent, toPeer: peerID) { error in
            Self.show(error.map { "not sent: \($0.localizedDescription)" } ?? "sent to \(peerID.displayName)")
        }
    }

    func session(
        _ session: MCSession, didStartReceivingResourceWithName resourceName: String, fromPeer peerID: MCPeerID, with progress: Progress
    ) {
        Self.show("\(peerID.displayName) sends \(progress.totalUnitCount) bytes")
    }

    func session(
        _ session: MCSession, didFinishReceivingResourceWithName resourceName: String, fromPeer peerID: MCPeerID, at localURL: URL?,
        withError error: (any Error)?
    ) {
        guard let localURL else { return Self.show("not received: \(error?.localizedDescription ?? "")") }
        let place = FileManager.default.temporaryDirectory.appendingPathComponent("share-\(UUID().uuidString)")
        do {
            try FileManager.default.moveItem(at: localURL, to: place)
            Self.show("received \(resourceName) as \(place.path)")
            self.thank(peerID)
        } catch {
            Self.show("cannot keep \(resourceName): \(error.localizedDescription)")
        }
    }

    private func thank(_ peer: MCPeerID) {
        guard let stream = try? self.session.startStream(withName: "thanks", toPeer: peer) else { return }
        stream.open()
        let words = Array("thank you".utf8)
        if stream.write(words, maxLength: words.count) < 0 { Self.show("\(peer.displayName) is gone") }
        stream.close()
    }

    func session(_ session: MCSession, didReceive stream: InputStream, withName streamName: String, fromPeer peerID: MCPeerID) {
        nonisolated(unsafe) let stream = stream
        let name = peerID.displayName
        Thread.detachNewThread {
            stream.open()
            var (words, block) = (Data(), [UInt8](repeating: 0, count: 1024))
            while case let count = stream.read(&block, maxLength: block.count), count > 0 { words.append(contentsOf: block[..<count]) }
            stream.close()
            Self.show("\(name) says \(String(decoding: words, as: UTF8.self))")
        }
    }

    func session(_ session: MCSession, didReceive data: Data, fromPeer peerID: MCPeerID) {}

    private static func show(_ line: String) {
        let safe = line.unicodeScalars.map { $0.properties.generalCategory == .control ? "?" : $0 }
        FileHandle.standardOutput.write(Data("\(String(String.UnicodeScalarView(safe)))\n".utf8))
    }
}

@main
struct Main {
    static func main() {
        guard CommandLine.arguments.count == 3 else { return print("usage: multipeer-share NAME FILE") }
        let share = Share(name: CommandLine.arguments[1], file: URL(fileURLWithPath: CommandLine.arguments[2]))
        withExtendedLifetime(share) { RunLoop.main.run() }
    }
}
