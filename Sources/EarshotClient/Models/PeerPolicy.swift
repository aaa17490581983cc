public import FoundationEssentials

extension ControlAPI {
    /// What the daemon's rules say of one peer: the answer of `GET /v1/peers/{peer}/policy`.
    public struct PeerPolicy: Codable, Hashable, Sendable {
        /// Which peer.
        public let peerID: String
        /// Its label, untrusted.
        public let peerName: String
        /// What this machine thinks of it.
        public let trust: Tolerant<Trust>
        /// Who has decided that.
        public let trustSource: Tolerant<TrustSource>?
        /// When its trust ends by itself.
        @ReadableValue public var trustExpiresAt: Date?
        /// What came of the last comparison of digits.
        public let verified: Tolerant<Verified>?
        /// One for each action, but of `group` one for each group that both are members of.
        @ReadableElements public var decisions: [PolicyDecision]

        /// A value from its parts.
        public init(
            peerID: String, peerName: String, trust: Tolerant<Trust>, trustSource: Tolerant<TrustSource>? = nil,
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

    /// What the rules make of one kind of thing between this machine and a peer.
    public struct PolicyDecision: Codable, Hashable, Sendable {
        /// What is decided about.
        public enum Action: String, Hashable, Sendable, CaseIterable {
            case connect
            case send
            case invite
            case message
            case file
            case stream
            case group
        }

        /// What is decided.
        public enum Outcome: String, Hashable, Sendable, CaseIterable {
            case allow
            case ask
            case deny
        }

        /// What is decided about.
        public let action: Tolerant<Action>
        /// What is decided.
        public let decision: Tolerant<Outcome>
        /// The rule that decides, such as `invitations.from_unknown = ask`.
        public let rule: String
        /// Why, in one lower-case sentence.
        public let reason: String

        /// A value from its parts.
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
