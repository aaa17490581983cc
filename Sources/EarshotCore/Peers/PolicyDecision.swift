/// The decision of this machine's rules about one kind of traffic with a peer, and the reason: for `earshot policy explain`.
public struct PolicyDecision: Sendable, Hashable, Codable {
    /// The kind of traffic.
    public enum Action: String, Sendable, Hashable, Codable, CaseIterable {
        /// A connection between the two.
        case connect
        /// Traffic that this machine sends to the peer: messages, resources, streams.
        case send
        /// The peer's invitation to a session.
        case invite
        /// The peer's messages.
        case message
        /// The peer's resources.
        case file
        /// The peer's streams.
        case stream
        /// Traffic in one group that both are members of.
        case group
    }

    /// The result of a decision.
    public enum Outcome: String, Sendable, Hashable, Codable, CaseIterable {
        case allow
        /// A user decides.
        case ask
        case deny
    }

    /// The kind of traffic.
    public let action: Action
    /// The result of the decision.
    public let outcome: Outcome
    /// The rule that applies: a setting with its value, such as `invitations.from_unknown = ask`, or a fact about the peer, such as `trust
    /// = blocked`.
    public let rule: String
    /// The reason, one lower-case sentence.
    public let reason: String

    package init(action: Action, outcome: Outcome, rule: String, reason: String) {
        self.action = action
        self.outcome = outcome
        self.rule = rule
        self.reason = reason
    }
}
