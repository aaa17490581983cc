import EarshotWire
import Simulation

@testable import EarshotCore
@testable import EarshotWire

extension Answer {
    var failure: EarshotError? { if case .failure(let error) = self { error } else { nil } }
    var error: EarshotError.Code? { self.failure?.code }
    var invitation: Invitation? { if case .invitation(let invitation) = self { invitation } else { nil } }
    var peer: Peer? { if case .peer(let peer) = self { peer } else { nil } }
    var sent: [MessageOutcome]? { if case .sent(let outcomes) = self { outcomes } else { nil } }
    var resource: Resource? { if case .resource(let resource) = self { resource } else { nil } }
    var resources: [Resource]? { if case .resources(let resources) = self { resources } else { nil } }
    var stream: ByteStream? { if case .stream(let stream) = self { stream } else { nil } }
    var verification: Verification? { if case .verification(let verification) = self { verification } else { nil } }
}

extension NodeCore {
    /// Makes a core with default settings, modified by `change`.
    static func bench(_ id: PeerID = peerID(100), key: OwnKey? = nil, seed: UInt64 = 1, change: (inout CoreSettings) -> Void = { _ in })
        -> NodeCore
    {
        var settings = CoreSettings()
        change(&settings)
        return NodeCore(id: id, key: key, settings: settings, hasDiscovery: true, random: SplitMix64(seed: seed))
    }
}

extension Now {
    /// Creates a time by both clocks. The wall clock starts at 2026-08-01T12:00:00Z.
    init(after time: Duration) {
        self.init(
            monotonic: MonotonicInstant(nanoseconds: 0) + time, wall: WallTime(milliseconds: 1_785_585_600_000) + time)
    }
}

extension LinkFacts {
    /// Returns the facts of a proven connection with a peer.
    static func of(
        _ peer: PeerID, name: String = "peer", isInitiator: Bool = false, transport: TransportKind = .tls,
        origin: [UInt8] = [10, 77, 0, 2], preference: EncryptionPreference = .optional, vouchedUntil: WallTime? = nil,
        extensions: [HelloExtension] = []
    ) throws -> LinkFacts {
        let proven = ProvenPeer(
            id: peer, displayName: try DisplayName(name), publicKey: [], signatureScheme: .ed25519, version: 1, encryption: preference,
            transport: transport, extensions: extensions,
            transcript: Transcript(initiatorHello: [1], responderHello: [2], transport: transport))
        return LinkFacts(
            peer: proven, origin: origin, isInitiator: isInitiator,
            dialledAddress: isInitiator ? PeerAddress(host: "10.77.0.2", zone: nil, port: 47110) : nil, vouchedUntil: vouchedUntil)
    }
}

extension CoreBench {
    /// Ends the attempt to open a transfer's data connection, which the peer dials.
    mutating func dataOpened(_ transfer: TransferID, _ stands: Bool) {
        let attempt = self.core.dataPaths.waiting(transfer) ?? 0
        self.handle(.dataPath(transfer, stands ? .attached(attempt: attempt) : .expired(attempt: attempt)))
    }

    /// Returns the effects for a transfer's data connection until now.
    func dataPath(of transfer: TransferID) -> [DataPathEffect] {
        self.effects.compactMap { if case .dataPath(transfer, let effect) = $0 { effect } else { nil } }
    }
}
