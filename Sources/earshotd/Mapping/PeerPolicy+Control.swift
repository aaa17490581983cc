internal import Earshot
internal import EarshotClient
internal import EarshotWire

extension ControlAPI.PeerPolicy {
    /// Creates the API's value of the rules for a peer.
    init(_ policy: PeerPolicy) {
        self.init(
            peerID: policy.peerID, peerName: policy.peerName, trust: Tolerant(policy.trust),
            trustSource: policy.trustSource.map { Tolerant($0) }, trustExpiresAt: policy.trustExpiresAt,
            verified: policy.verified.map { Tolerant($0) },
            decisions: policy.decisions.map { decision in
                ControlAPI.PolicyDecision(
                    action: Tolerant(decision.action), decision: Tolerant(decision.outcome), rule: decision.rule, reason: decision.reason)
            })
    }
}
