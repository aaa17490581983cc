public import EarshotWire
public import FoundationEssentials

extension ControlAPI {
    /// The rules for one peer: the answer of `GET /v1/peers/{peer}/policy`.
    public struct PeerPolicy: Codable, Hashable, Sendable {
        /// The peer's id.
        public let peerID: PeerID
        /// The peer's display name, untrusted.
        public let peerName: String
        /// The trust in the peer.
        public let trust: Tolerant<Trust>
        /// The source of the trust.
        public let trustSource: Tolerant<TrustSource>?
        /// When the trust expires.
        @ReadableValue public var trustExpiresAt: Date?
        /// The result of the last comparison of digits.
        public let verified: Tolerant<Verified>?
        /// The decisions: one for each action; for `group`, one for each group that both machines are members of.
        @ReadableElements public var decisions: [PolicyDecision]

        /// Creates a value from its parts.
        public init(
            peerID: PeerID, peerName: String, trust: Tolerant<Trust>, trustSource: Tolerant<TrustSource>? = nil,
            trustExpiresAt: Date? = nil,
            verified: Tolerant<Verified>? = nil, decisions: [PolicyDecision]
        ) {
            self.peerID = peerID
            self.peerName = peerName
            self.trust = trust
            self.trustSource = trustSource
            self._trustExpiresAt = ReadableValue(trustExpiresAt)
            self.verified = verified
            self._decisions = ReadableElements(decisions)
        }

        private enum CodingKeys: String, CodingKey {
            case peerID = "peer_id"
            case peerName = "peer_name"
            case trust
            case trustSource = "trust_source"
            case trustExpiresAt = "trust_expires_at"
            case verified, decisions
        }
    }

    /// The decision of the rules about one kind of action between this machine and a peer.
    public struct PolicyDecision: Codable, Hashable, Sendable {
        /// The kind of action.
        public enum Action: String, Hashable, Sendable, CaseIterable {
            case connect
            case send
            case invite
            case message
            case file
            case stream
            case group
        }

        /// The decision.
        public enum Outcome: String, Hashable, Sendable, CaseIterable {
            case allow
            case ask
            case deny
        }

        /// The kind of action.
        public let action: Tolerant<Action>
        /// The decision.
        public let decision: Tolerant<Outcome>
        /// The rule that decides, such as `invitations.from_unknown = ask`.
        public let rule: String
        /// The reason, as a lower-case sentence.
        public let reason: String

        /// Creates a value from its parts.
        public init(action: Tolerant<Action>, decision: Tolerant<Outcome>, rule: String, reason: String) {
            self.action = action
            self.decision = decision
            self.rule = rule
            self.reason = reason
        }

        private enum CodingKeys: String, CodingKey {
            case action, decision, rule, reason
        }
    }
}
