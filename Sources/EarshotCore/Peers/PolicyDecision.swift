/// What this machine's rules make of one kind of thing between it and a peer, and why: for `earshot policy explain`.
public struct PolicyDecision: Sendable, Hashable, Codable {
    /// What is decided about.
    public enum Action: String, Sendable, Hashable, Codable, CaseIterable {
        /// A connection between the two.
        case connect
        /// What this machine sends the peer: messages, resources, streams.
        case send
        /// The peer's invitation to a session.
        case invite
        /// The peer's messages.
        case message
        /// The peer's resources.
        case file
        /// The peer's streams.
        case stream
        /// What is said in one group that both are members of.
        case group
    }

    /// What is decided.
    public enum Outcome: String, Sendable, Hashable, Codable, CaseIterable {
        case allow
        /// A person is asked.
        case ask
        case deny
    }

    /// What is decided about.
    public let action: Action
    /// What is decided.
    public let outcome: Outcome
    /// The rule that decides: a setting with its value, such as `invitations.from_unknown = ask`, or what was decided about the peer, such as `trust = blocked`.
    public let rule: String
    /// Why, in one lower-case sentence.
    public let reason: String

    package init(action: Action, outcome: Outcome, rule: String, reason: String) {
        self.action = action
        self.outcome = outcome
        self.rule = rule
        self.reason = reason
    }
}
