internal import Earshot
internal import EarshotClient
internal import EarshotWire

extension ControlAPI.Peer {
    /// Creates the API's value of a peer.
    init(_ peer: Peer) {
        self.init(
            id: peer.id, name: peer.name, displayName: peer.displayName, presence: Tolerant(peer.presence), state: Tolerant(peer.state),
            trust: Tolerant(peer.trust), protection: peer.protection.map { Tolerant($0) }, proven: peer.proven, addresses: peer.addresses,
            discoveryInfo: peer.discoveryInfo, sources: peer.sources.map(\.rawValue),
            error: ControlAPI.Failure(code: peer.error?.code, message: peer.error?.message),
            trustSource: peer.trustSource.map { Tolerant($0) }, trustExpiresAt: peer.trustExpiresAt,
            verified: peer.verified.map { Tolerant($0) }, nameConflict: peer.nameConflict, kind: Tolerant(peer.kind),
            fingerprint: peer.fingerprint, firstSeen: peer.firstSeen, lastSeen: peer.lastSeen)
    }
}
