import MultipeerConnectivity
import Testing

/// The uses of the types that code for Apple's framework may make.
@Suite struct CompatibilityTests {
    /// A session as tests of programs have it.
    private final class FakeSession: MCSession, @unchecked Sendable {
        nonisolated(unsafe) var sent: [Data] = []

        override var connectedPeers: [MCPeerID] { [self.myPeerID] }
        override var encryptionPreference: MCEncryptionPreference { .none }

        override func send(_ data: Data, toPeers peerIDs: [MCPeerID], with mode: MCSessionSendDataMode) throws { self.sent.append(data) }

        override func startStream(withName streamName: String, toPeer peerID: MCPeerID) throws -> OutputStream {
            OutputStream(toMemory: ())
        }

        override func sendResource(
            at resourceURL: URL, withName resourceName: String, toPeer peerID: MCPeerID,
            withCompletionHandler completionHandler: (((any Error)?) -> Void)? = nil
        ) -> Progress? {
            completionHandler?(MCError(.cancelled))
            return nil
        }
    }

    private final class FakeBrowser: MCNearbyServiceBrowser, @unchecked Sendable {
        override var serviceType: String { "fake" }
        override func invitePeer(_ peerID: MCPeerID, to session: MCSession, withContext context: Data?, timeout: TimeInterval) {}
    }

    @Test func aSessionIsSubclassed() throws {
        let session: MCSession = FakeSession(peer: MCPeerID(displayName: "fake"))
        try session.send(Data([1]), toPeers: session.connectedPeers, with: .reliable)
        #expect((session as? FakeSession)?.sent == [Data([1])] && session.encryptionPreference == .none)
        #expect(try session.startStream(withName: "x", toPeer: session.myPeerID).streamStatus == .notOpen)
        var ends: [MCError.Code?] = []
        // The handler may be one that is not `Sendable`.
        session.sendResource(at: URL(fileURLWithPath: "/"), withName: "x", toPeer: session.myPeerID) { ends.append(($0 as? MCError)?.code) }
        #expect(ends == [.cancelled])
        #expect(FakeBrowser(peer: session.myPeerID, serviceType: "x").serviceType == "fake")
    }

    @Test func errorsCarryWhatAProgramSays() {
        let error = MCError(.timedOut, userInfo: [NSLocalizedDescriptionKey: "too late", "key": 7])
        #expect(error.userInfo["key"] as? Int == 7)
        #expect(error.localizedDescription == "too late" && (error as any Error).localizedDescription == "too late")
        let bridged = error as NSError
        #expect(bridged.domain == MCErrorDomain && bridged.code == 4 && bridged.userInfo["key"] as? Int == 7)
        #expect(MCError(.timedOut).userInfo.isEmpty && MCError(.timedOut) == error)
    }
}
