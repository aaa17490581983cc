import Foundation
import MultipeerConnectivity
import Synchronization
import Testing

/// A program that records its delegate calls, and acts as the test says.
final class Program: NSObject, MCSessionDelegate, MCNearbyServiceAdvertiserDelegate, MCNearbyServiceBrowserDelegate, @unchecked Sendable {
    /// A recorded delegate call.
    enum Told: Equatable {
        case state(MCPeerID, MCSessionState)
        case data(Data, MCPeerID)
        case found(MCPeerID, [String: String]?)
        case lost(MCPeerID)
        case invited(MCPeerID, Data?)
        case advertisingFailed(MCError.Code?)
        case browsingFailed(MCError.Code?)
        case certificate(MCPeerID, Int)
        case stream(String, MCPeerID)
        case began(String, MCPeerID)
        case got(String, MCPeerID, Data?)
    }

    let peer: MCPeerID
    let session: MCSession
    let advertiser: MCNearbyServiceAdvertiser
    let browser: MCNearbyServiceBrowser
    /// Whether the program invites every peer that it finds. `accepts` is whether it accepts every invitation.
    let invites: Bool
    let accepts: Bool
    let takesCertificates: Bool
    private let log = Mutex<(told: [Told], waiters: [CheckedContinuation<Void, Never>])>(([], []))
    private let inputs = Mutex<[SendableStream]>([])
    private let progresses = Mutex<[Progress]>([])
    private let places = Mutex<[URL]>([])
    /// The handlers of invitations that are answered later; `nil` if the program answers immediately.
    private let unanswered = Mutex<[SendableAnswer]?>(nil)

    struct SendableStream: @unchecked Sendable { let stream: InputStream }
    private struct SendableAnswer: @unchecked Sendable { let handler: (Bool, MCSession?) -> Void }

    init(
        _ name: String, type: String, invites: Bool = false, accepts: Bool = true, encryption: MCEncryptionPreference = .optional,
        info: [String: String]? = nil, peer: MCPeerID? = nil, takesCertificates: Bool = true
    ) {
        self.takesCertificates = takesCertificates
        _ = Air.isUsed
        self.peer = peer ?? MCPeerID(displayName: name)
        self.session = MCSession(peer: self.peer, securityIdentity: nil, encryptionPreference: encryption)
        self.advertiser = MCNearbyServiceAdvertiser(peer: self.peer, discoveryInfo: info, serviceType: type)
        self.browser = MCNearbyServiceBrowser(peer: self.peer, serviceType: type)
        self.invites = invites
        self.accepts = accepts
        super.init()
        self.session.delegate = self
        self.advertiser.delegate = self
        self.browser.delegate = self
    }

    func start() {
        self.advertiser.startAdvertisingPeer()
        self.browser.startBrowsingForPeers()
    }

    func stop() {
        self.advertiser.stopAdvertisingPeer()
        self.browser.stopBrowsingForPeers()
        self.session.disconnect()
    }

    /// Leaves invitations unanswered until ``answer()``.
    func holdAnswers() { self.unanswered.withLock { $0 = [] } }

    func answer() {
        let held = self.unanswered.withLock { held in
            defer { held = nil }
            return held ?? []
        }
        for answer in held { answer.handler(self.accepts, self.session) }
    }

    // MARK: Delegate calls

    private func note(_ told: Told) {
        self.log.withLock { $0.told.append(told) }
        self.wake()
    }

    private func wake() {
        let waiters = self.log.withLock { log in
            defer { log.waiters = [] }
            return log.waiters
        }
        for waiter in waiters { waiter.resume() }
    }

    var told: [Told] { self.log.withLock { $0.told } }

    /// Waits until what was told so far fulfils something; a test whose time is over says what was told.
    func until(_ isEnough: ([Told]) -> Bool) async {
        await withTaskCancellationHandler {
            while !Task.isCancelled {
                let told = self.told
                if isEnough(told) { return }
                await withCheckedContinuation { continuation in
                    let isLate = self.log.withLock { log in
                        guard log.told.count == told.count, !Task.isCancelled else { return true }
                        log.waiters.append(continuation)
                        return false
                    }
                    if isLate { continuation.resume() }
                }
            }
            Issue.record("\(self.peer.displayName) waited in vain; it was told \(self.told)")
        } onCancel: {
            self.wake()
        }
    }

    func until(_ told: Told) async { await self.until { $0.contains(told) } }

    /// Waits until each of these is connected.
    func connected(_ others: [Program]) async {
        await self.until { told in others.allSatisfy { told.contains(.state($0.peer, .connected)) } }
    }

    func states(of other: Program) -> [MCSessionState] {
        self.told.compactMap { if case .state(other.peer, let state) = $0 { state } else { nil } }
    }

    var data: [Data] { self.told.compactMap { if case .data(let data, _) = $0 { data } else { nil } } }
    var streams: [InputStream] { self.inputs.withLock { $0.map(\.stream) } }
    var progress: [Progress] { self.progresses.withLock { $0 } }
    /// The places of resources when the program was told of them.
    var files: [URL] { self.places.withLock { $0 } }

    func session(_ session: MCSession, peer peerID: MCPeerID, didChange state: MCSessionState) { self.note(.state(peerID, state)) }

    func session(_ session: MCSession, didReceive data: Data, fromPeer peerID: MCPeerID) { self.note(.data(data, peerID)) }

    func session(_ session: MCSession, didReceive stream: InputStream, withName streamName: String, fromPeer peerID: MCPeerID) {
        let held = SendableStream(stream: stream)
        self.inputs.withLock { $0.append(held) }
        self.note(.stream(streamName, peerID))
    }

    func session(
        _ session: MCSession, didStartReceivingResourceWithName resourceName: String, fromPeer peerID: MCPeerID, with progress: Progress
    ) {
        self.progresses.withLock { $0.append(progress) }
        self.note(.began(resourceName, peerID))
    }

    func session(
        _ session: MCSession, didFinishReceivingResourceWithName resourceName: String, fromPeer peerID: MCPeerID, at localURL: URL?,
        withError error: (any Error)?
    ) {
        if let localURL { self.places.withLock { $0.append(localURL) } }
        self.note(.got(resourceName, peerID, localURL.flatMap { try? Data(contentsOf: $0) }))
    }

    func session(
        _ session: MCSession, didReceiveCertificate certificate: [Any]?, fromPeer peerID: MCPeerID,
        certificateHandler: @escaping (Bool) -> Void
    ) {
        self.note(.certificate(peerID, (certificate?.first as? Data)?.count ?? 0))
        certificateHandler(self.takesCertificates)
    }

    func advertiser(
        _ advertiser: MCNearbyServiceAdvertiser, didReceiveInvitationFromPeer peerID: MCPeerID, withContext context: Data?,
        invitationHandler: @escaping (Bool, MCSession?) -> Void
    ) {
        let answer = SendableAnswer(handler: invitationHandler)
        let isHeld = self.unanswered.withLock { held in
            held?.append(answer)
            return held != nil
        }
        self.note(.invited(peerID, context))
        if !isHeld { invitationHandler(self.accepts, self.session) }
    }

    func browser(_ browser: MCNearbyServiceBrowser, foundPeer peerID: MCPeerID, withDiscoveryInfo info: [String: String]?) {
        self.note(.found(peerID, info))
        if self.invites { browser.invitePeer(peerID, to: self.session, withContext: nil, timeout: 20) }
    }

    func browser(_ browser: MCNearbyServiceBrowser, lostPeer peerID: MCPeerID) { self.note(.lost(peerID)) }

    func browser(_ browser: MCNearbyServiceBrowser, didNotStartBrowsingForPeers error: any Error) {
        self.note(.browsingFailed((error as? MCError)?.code))
    }

    func advertiser(_ advertiser: MCNearbyServiceAdvertiser, didNotStartAdvertisingPeer error: any Error) {
        self.note(.advertisingFailed((error as? MCError)?.code))
    }
}

/// A service type that no other test uses.
func freshType() -> String { "t" + String(UInt64.random(in: 0...UInt64.max), radix: 36).prefix(13) }

/// Programs that all look for each other, each inviting and accepting everybody, until they are one mesh.
func mesh(_ count: Int, encryption: MCEncryptionPreference = .optional) async -> [Program] {
    let type = freshType()
    let programs = (0..<count).map { Program("p\($0)", type: type, invites: true, encryption: encryption) }
    for program in programs { program.start() }
    for program in programs { await program.connected(programs.filter { $0 !== program }) }
    return programs
}
