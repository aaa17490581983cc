import Foundation
import MultipeerConnectivity

/// Work that takes its time, in the order in which it is asked for.
typealias Job = @Sendable () async -> Void

/// A member of a session that sends and receives streams and resources, as it is told by lines of standard input:
///
///     stream WRITTEN-READ-ANYTHING PEER BYTES     WRITTEN and READ are ways: loop, thread or poll
///     resource NAME PEER BYTES                    NAME begins with sender or receiver where that side is to cancel it
///
/// What comes of each is a line of standard output.
final class Transfers: NSObject, MCSessionDelegate, MCNearbyServiceAdvertiserDelegate, MCNearbyServiceBrowserDelegate, Sendable {
    private let session: MCSession
    private let advertiser: MCNearbyServiceAdvertiser
    private let browser: MCNearbyServiceBrowser
    private let jobs: AsyncStream<Job>.Continuation

    init(name: String, room: String, jobs: AsyncStream<Job>.Continuation) {
        let me = Self.peer(name)
        self.session = MCSession(peer: me)
        self.advertiser = MCNearbyServiceAdvertiser(peer: me, discoveryInfo: nil, serviceType: room)
        self.browser = MCNearbyServiceBrowser(peer: me, serviceType: room)
        self.jobs = jobs
        super.init()
        self.session.delegate = self
        self.advertiser.delegate = self
        self.browser.delegate = self
        self.advertiser.startAdvertisingPeer()
        self.browser.startBrowsingForPeers()
    }

    /// The peer that the file `MULTIPEER_ARCHIVE` has, or a new one, which is archived there.
    private static func peer(_ name: String) -> MCPeerID {
        guard let path = ProcessInfo.processInfo.environment["MULTIPEER_ARCHIVE"] else { return MCPeerID(displayName: name) }
        let file = URL(fileURLWithPath: path)
        do {
            if let data = try? Data(contentsOf: file), let peer = try NSKeyedUnarchiver.unarchivedObject(ofClass: MCPeerID.self, from: data)
            {
                return peer
            }
            let peer = MCPeerID(displayName: name)
            try NSKeyedArchiver.archivedData(withRootObject: peer, requiringSecureCoding: true).write(to: file)
            return peer
        } catch {
            show("\(path): \(error)")
            return MCPeerID(displayName: name)
        }
    }

    // MARK: Sending

    func run(_ line: String) {
        let words = line.split(separator: " ").map(String.init)
        let peers = self.session.connectedPeers
        guard words.count == 4, let bytes = Int(words[3]), let peer = peers.first(where: { $0.displayName == words[2] }) else {
            return show("cannot do: \(line)")
        }
        switch words[0] {
        case "stream": self.write(words[1], to: peer, bytes)
        case "resource": self.send(words[1], to: peer, bytes)
        default: show("cannot do: \(line)")
        }
    }

    /// The ways in which a stream is written and read, by its name.
    private static func ways(of name: String) -> (written: Way, read: Way)? {
        let parts = name.split(separator: "-").map(String.init)
        guard parts.count >= 2, let written = Way(rawValue: parts[0]), let read = Way(rawValue: parts[1]) else { return nil }
        return (written, read)
    }

    private func write(_ name: String, to peer: MCPeerID, _ bytes: Int) {
        guard let way = Self.ways(of: name)?.written else { return show("no way: \(name)") }
        do {
            let output = try self.session.startStream(withName: name, toPeer: peer)
            Writer(output, Pattern(name), bytes) { show("\(name) to \(peer.displayName): \($0)") }.start(way)
        } catch {
            show("\(name) to \(peer.displayName): \(error)")
        }
    }

    private func send(_ name: String, to peer: MCPeerID, _ bytes: Int) {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("multipeer-transfers-\(UUID().uuidString)")
        do { try Pattern(name).bytes(from: 0, bytes).write(to: file) } catch { return show("\(name): \(error)") }
        let progress = self.session.sendResource(at: file, withName: name, toPeer: peer) { error in
            try? FileManager.default.removeItem(at: file)
            show("\(name) to \(peer.displayName): \(error.map(Self.words) ?? "sent")")
        }
        if let progress { self.watch(progress, "\(name) to \(peer.displayName)", cancels: name.hasPrefix("sender")) }
    }

    /// Follows a transfer, and cancels it once it has begun where that is asked for.
    private func watch(_ progress: Progress, _ what: String, cancels: Bool) {
        self.jobs.yield {
            var (last, isRising) = (0.0, true)
            for await fraction in progress.updates {
                isRising = isRising && fraction >= last
                last = fraction
                if cancels, fraction > 0, !progress.isCancelled {
                    show("\(what): cancels it \(fraction < 1 ? "on its way" : "too late")")
                    progress.cancel()
                }
            }
            if !cancels { show("\(what): progress \(isRising ? "rises" : "falls") to \(last)") }
        }
    }

    private static func words(_ error: any Error) -> String {
        (error as? MCError)?.code == .cancelled ? "cancelled" : "failed: \(error)"
    }

    // MARK: Receiving

    func session(_ session: MCSession, didReceive stream: InputStream, withName streamName: String, fromPeer peerID: MCPeerID) {
        guard let way = Self.ways(of: streamName)?.read else { return stream.close() }
        Reader(stream, Pattern(streamName)) { show("\(streamName) from \(peerID.displayName): \($0)") }.start(way)
    }

    func session(
        _ session: MCSession, didStartReceivingResourceWithName resourceName: String, fromPeer peerID: MCPeerID, with progress: Progress
    ) {
        self.watch(progress, "\(resourceName) from \(peerID.displayName)", cancels: resourceName.hasPrefix("receiver"))
    }

    func session(
        _ session: MCSession, didFinishReceivingResourceWithName resourceName: String, fromPeer peerID: MCPeerID, at localURL: URL?,
        withError error: (any Error)?
    ) {
        let what = "\(resourceName) from \(peerID.displayName)"
        if let error { return show("\(what): \(Self.words(error)), \(localURL == nil ? "no file" : "a file")") }
        guard let localURL, let data = try? Data(contentsOf: localURL) else { return show("\(what): no file") }
        show("\(what): \(Pattern(resourceName).verdict(of: data))")
        show("file \(what): \(localURL.path)")
    }

    func session(_ session: MCSession, didReceive data: Data, fromPeer peerID: MCPeerID) {}

    // MARK: Coming together

    func session(_ session: MCSession, peer peerID: MCPeerID, didChange state: MCSessionState) {
        switch state {
        case .connected: show("* \(peerID.displayName) is here")
        case .notConnected: show("* \(peerID.displayName) is not here")
        case .connecting: break
        }
    }

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
}

/// Prints a line at once.
func show(_ line: String) { FileHandle.standardOutput.write(Data("\(line)\n".utf8)) }
