package import EarshotWire

/// The rules of this machine for one peer. The node follows these decisions, and explains them to users.
///
/// Pure: it maps facts to decisions.
package struct PolicyEngine: Sendable {
    /// The facts that the rules depend on.
    package struct Facts: Sendable, Hashable {
        package var trust: Trust
        /// The source of the trust or of the block; `nil` if the trust is unknown.
        package var source: TrustSource?
        /// The time when the trust expires.
        package var trustedUntil: WallTime?
        package var verified: Verified?
        package var hasSession: Bool
        /// Whether the peer has used TLS with us, which `optional` requires from then on.
        package var isTLSPinned: Bool
        /// Whether a user here has invited the peer and waits for the answer.
        package var isInviting: Bool

        package init(
            trust: Trust, source: TrustSource?, trustedUntil: WallTime?, verified: Verified?, hasSession: Bool, isTLSPinned: Bool,
            isInviting: Bool
        ) {
            self.trust = trust
            self.source = source
            self.trustedUntil = trustedUntil
            self.verified = verified
            self.hasSession = hasSession
            self.isTLSPinned = isTLSPinned
            self.isInviting = isInviting
        }
    }

    /// The decision about an invitation.
    package enum InvitationOutcome: Sendable, Hashable {
        case ask, accept, reject
        /// Not shown here. The inviter gets the same answer as for `reject`.
        case hide

        /// The outcome as users see it.
        package var shown: PolicyDecision.Outcome {
            switch self {
            case .ask: .ask
            case .accept: .allow
            case .reject, .hide: .deny
            }
        }
    }

    /// The settings that the rules depend on.
    package struct Settings: Sendable, Hashable {
        package var encryption = EncryptionPreference.required
        /// For peers whose trust is unknown.
        package var fromUnknown = InvitationPolicy.ask
        /// For trusted peers.
        package var fromTrusted = InvitationPolicy.accept
        /// Whether invitations from untrusted peers are declined without being shown.
        package var pairedOnly = false
        /// For resources from peers in a session.
        package var acceptResources = OfferPolicy.session

        package init() {}
    }

    private let facts: Facts
    private let settings: Settings

    package init(facts: Facts, settings: Settings) {
        self.facts = facts
        self.settings = settings
    }

    /// Returns the decision about the peer's invitation, and its rule.
    package func invitation() -> (outcome: InvitationOutcome, rule: String, reason: String) {
        let trust = self.trustWords
        switch self.facts.trust {
        case .blocked:
            return (.hide, "trust = blocked", "it is blocked: its invitations are declined without being shown")
        case .trusted, .unknown: break
        }
        if self.facts.isInviting { return (.accept, "invite", "a user here has invited it, so both sides want a session") }
        switch self.facts.trust {
        case .trusted:
            let rule = "invitations.from_trusted = \(self.settings.fromTrusted.rawValue)"
            switch self.settings.fromTrusted {
            case .accept: return (.accept, rule, "\(trust), and invitations from trusted peers are accepted automatically")
            case .ask: return (.ask, rule, "\(trust), but a user decides about invitations from trusted peers too")
            case .reject: return (.reject, rule, "\(trust), but invitations from trusted peers are rejected")
            }
        case .unknown, .blocked:
            if self.settings.pairedOnly {
                return (.hide, "invitations.paired_only = yes", "\(trust), and such invitations are declined without being shown")
            }
            let rule = "invitations.from_unknown = \(self.settings.fromUnknown.rawValue)"
            switch self.settings.fromUnknown {
            case .accept:
                guard self.facts.verified != .mismatched else {
                    return (.ask, "verified = mismatched", "its digits differed when they were compared, so a user decides")
                }
                return (.accept, rule, "\(trust), but invitations from untrusted peers are accepted automatically")
            case .ask: return (.ask, rule, "\(trust), so a user decides")
            case .reject: return (.reject, rule, "\(trust), and invitations from untrusted peers are rejected")
            }
        }
    }

    /// Returns the decision about the peer's invitation to a group, by `[groups] invitations`, and its rule.
    package func groupInvitation(_ policy: InvitationPolicy) -> (outcome: InvitationOutcome, rule: String, reason: String) {
        let trust = self.trustWords
        let rule = "groups.invitations = \(policy.rawValue)"
        if self.facts.trust == .blocked {
            return (.hide, "trust = blocked", "it is blocked: its invitations are declined without being shown")
        }
        if self.facts.trust != .trusted, self.settings.pairedOnly {
            return (.hide, "invitations.paired_only = yes", "\(trust), and such invitations are declined without being shown")
        }
        switch policy {
        case .reject: return (.reject, rule, "invitations to groups are rejected")
        case .accept where self.facts.trust == .trusted:
            return (.accept, rule, "\(trust), and its invitations to groups are accepted automatically")
        case .accept, .ask: return (.ask, rule, "\(trust), so a user decides")
        }
    }

    /// Returns whether a file that the peer sends to a group is accepted without asking a user, by `[groups] files` and `[resources] accept`,
    /// and the reason, as the end of a sentence.
    package func groupFile(_ policy: GroupFilePolicy) -> (isTaken: Bool, reason: String) {
        guard self.settings.acceptResources == .session else { return (false, "a user decides about each file there") }
        switch policy {
        case .accept: return (true, "its files there are accepted")
        case .ask where self.facts.trust == .trusted || self.facts.hasSession:
            return (true, "its files there are accepted, because it is \(self.facts.hasSession ? "in a session" : "trusted")")
        case .ask: return (false, "a user decides about its files there (groups.files = ask)")
        }
    }

    /// Returns every decision about the peer with its rule, and one for each named group that both are members of.
    package func explain(in groups: [String] = [], files: GroupFilePolicy = .accept) -> [PolicyDecision] {
        let invitation = self.invitation()
        return [
            self.connect(),
            self.send(),
            PolicyDecision(action: .invite, outcome: invitation.outcome.shown, rule: invitation.rule, reason: invitation.reason),
            self.inSession(.message, rule: "session", "messages in a session are accepted"),
            self.file(),
            self.inSession(.stream, rule: "session", "streams in a session wait for a reader"),
        ] + groups.map { self.inGroup($0, files) }
    }

    /// Returns every decision about a LocalSend device with its rule. Messages and files come with offers.
    package func explainDevice() -> [PolicyDecision] {
        let offer = self.invitation()
        let trust = self.trustWords
        let send: PolicyDecision =
            switch self.facts.trust {
            case .blocked: self.send()
            case .trusted: PolicyDecision(action: .send, outcome: .allow, rule: "trust = trusted", reason: trust)
            case .unknown:
                PolicyDecision(
                    action: .send, outcome: .allow, rule: "trust = unknown",
                    reason: "\(trust), so that its id has to be given: anyone can take its name")
            }
        return [send]
            + [.invite, .message, .file].map {
                PolicyDecision(action: $0, outcome: offer.outcome.shown, rule: offer.rule, reason: offer.reason)
            }
    }

    /// Messages in a group need no session: both must be members, and the peer must not be blocked.
    private func inGroup(_ name: String, _ files: GroupFilePolicy) -> PolicyDecision {
        guard self.facts.trust != .blocked else {
            let reason = "it is blocked: in \(name), nothing is sent to it or accepted from it"
            return PolicyDecision(action: .group, outcome: .deny, rule: "trust = blocked", reason: reason)
        }
        let reason =
            "both are members: messages in \(name) are sent to it and accepted from it, and \(self.groupFile(files).reason)"
        return PolicyDecision(action: .group, outcome: .allow, rule: "group = \(name)", reason: reason)
    }

    private func connect() -> PolicyDecision {
        guard self.facts.trust != .blocked else {
            return PolicyDecision(
                action: .connect, outcome: .deny, rule: "trust = blocked",
                reason: "it is blocked: this machine does not connect to it, and accepts nothing from it")
        }
        let rule = "peer.encryption = \(self.settings.encryption.rawValue)"
        let reason =
            switch self.settings.encryption {
            case .required: "over TLS only"
            case .optional where self.facts.isTLSPinned: "over TLS only, because it has used TLS before"
            case .optional: "over TLS if its settings allow that, else in plaintext, which anyone on the network can read"
            case .none: "in plaintext only, which anyone on the network can read"
            }
        return PolicyDecision(action: .connect, outcome: .allow, rule: rule, reason: reason)
    }

    /// The decision about `earshot send`, `file send` and `stream open`.
    private func send() -> PolicyDecision {
        let (outcome, rule, reason): (PolicyDecision.Outcome, String, String) =
            switch (self.facts.trust, self.facts.hasSession, self.facts.source) {
            case (.blocked, _, _): (.deny, "trust = blocked", "it is blocked, and nothing is sent to it")
            case (_, true, _): (.allow, "session", "there is a session with it")
            case (.trusted, false, .authority): (.allow, "identity.authorities", "\(self.trustWords), so it is invited to a session first")
            case (.trusted, false, _): (.allow, "trust = trusted", "\(self.trustWords), so it is invited to a session first")
            case (.unknown, false, _):
                (.deny, "trust = unknown", "\(self.trustWords), and there is no session with it")
            }
        return PolicyDecision(action: .send, outcome: outcome, rule: rule, reason: reason)
    }

    private func file() -> PolicyDecision {
        let rule = "resources.accept = \(self.settings.acceptResources.rawValue)"
        switch self.settings.acceptResources {
        case .session: return self.inSession(.file, rule: rule, "files in a session are accepted, within the limits of [resources]")
        case .ask: return self.inSession(.file, rule: rule, "a user decides about each file", outcome: .ask)
        }
    }

    private func inSession(
        _ action: PolicyDecision.Action, rule: String, _ reason: String, outcome: PolicyDecision.Outcome = .allow
    ) -> PolicyDecision {
        if self.facts.trust == .blocked {
            return PolicyDecision(action: action, outcome: .deny, rule: "trust = blocked", reason: "it is blocked")
        }
        guard !self.facts.hasSession else { return PolicyDecision(action: action, outcome: outcome, rule: rule, reason: reason) }
        // The peer has to invite first, so the rule for invitations decides. With `ask`, a user still decides about each resource.
        let invitation = self.invitation()
        switch invitation.outcome {
        case .accept where outcome == .ask:
            return PolicyDecision(action: action, outcome: .ask, rule: rule, reason: reason)
        case .accept:
            return PolicyDecision(
                action: action, outcome: outcome, rule: invitation.rule,
                reason: "there is no session with it, and its invitation is accepted automatically")
        case .ask:
            return PolicyDecision(
                action: action, outcome: .ask, rule: invitation.rule,
                reason: "there is no session with it, and a user decides about its invitation")
        case .reject, .hide:
            return PolicyDecision(
                action: action, outcome: .deny, rule: invitation.rule,
                reason: "there is no session with it, and its invitation is declined")
        }
    }

    /// The trust in the peer, as the beginning of a sentence.
    private var trustWords: String {
        switch (self.facts.trust, self.facts.source) {
        case (.trusted, .authority): "one of identity.authorities signed its certificate"
        case (.trusted, _):
            self.facts.trustedUntil.map { "it is trusted until \($0.text)" } ?? "it is trusted"
        case (.unknown, _): "it is not trusted"
        case (.blocked, _): "it is blocked"
        }
    }
}
