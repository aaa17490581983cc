import EarshotWire
import Testing

@testable import EarshotCore

@Suite struct PolicyEngineTests {
    private func engine(
        _ trust: Trust, source: TrustSource? = nil, trustedUntil: WallTime? = nil, verified: Verified? = nil, hasSession: Bool = false,
        isInviting: Bool = false, isTLSPinned: Bool = false, _ configure: (inout PolicyEngine.Settings) -> Void = { _ in }
    ) -> PolicyEngine {
        var settings = PolicyEngine.Settings()
        configure(&settings)
        return PolicyEngine(
            facts: PolicyEngine.Facts(
                trust: trust, source: source, trustedUntil: trustedUntil, verified: verified, hasSession: hasSession,
                isTLSPinned: isTLSPinned, isInviting: isInviting), settings: settings)
    }

    @Test func invitationsGoByTheRulesInTheirOrder() {
        #expect(self.engine(.unknown).invitation().outcome == .ask)
        #expect(self.engine(.unknown) { $0.fromUnknown = .accept }.invitation().outcome == .accept)
        #expect(self.engine(.unknown) { $0.fromUnknown = .reject }.invitation().outcome == .reject)
        #expect(self.engine(.unknown, verified: .mismatched) { $0.fromUnknown = .accept }.invitation().outcome == .ask)
        #expect(self.engine(.trusted).invitation().outcome == .accept)
        #expect(self.engine(.trusted) { $0.fromTrusted = .ask }.invitation().outcome == .ask)
        #expect(self.engine(.trusted) { $0.pairedOnly = true }.invitation().outcome == .accept)
        #expect(self.engine(.unknown) { $0.pairedOnly = true }.invitation().outcome == .hide)
        #expect(
            self.engine(.unknown) {
                $0.pairedOnly = true
                $0.fromUnknown = .accept
            }.invitation().outcome == .hide)
        #expect(self.engine(.unknown, isInviting: true) { $0.pairedOnly = true }.invitation().outcome == .accept)
        #expect(self.engine(.blocked, isInviting: true).invitation().outcome == .hide)
    }

    @Test func everyActionIsExplainedByARule() {
        for trust in Trust.allCases {
            for hasSession in [false, true] {
                let decisions = self.engine(trust, hasSession: hasSession).explain()
                #expect(decisions.map(\.action) == PolicyDecision.Action.allCases.filter { $0 != .group })
                #expect(decisions.allSatisfy { !$0.rule.isEmpty && !$0.reason.isEmpty && !$0.reason.hasSuffix(".") })
                if trust == .blocked { #expect(decisions.allSatisfy { $0.outcome == .deny && $0.rule == "trust = blocked" }) }
            }
        }
        let outcomes = self.engine(.unknown, hasSession: true) { $0.acceptResources = .ask }.explain().map(\.outcome)
        #expect(outcomes == [.allow, .allow, .ask, .allow, .ask, .allow])
    }

    @Test func filesOfMembersAreTakenOrAskedAbout() {
        #expect(self.engine(.unknown).groupFile(.accept).isTaken)
        #expect(!self.engine(.unknown).groupFile(.ask).isTaken)
        #expect(self.engine(.trusted).groupFile(.ask).isTaken)
        #expect(self.engine(.unknown, hasSession: true).groupFile(.ask).isTaken)
        // A user who wants to decide about each file is asked.
        #expect(!self.engine(.trusted) { $0.acceptResources = .ask }.groupFile(.accept).isTaken)
    }

    @Test func aGroupIsARuleOfItsOwn() {
        let decisions = self.engine(.unknown).explain(in: ["team", "ops"])
        #expect(decisions.dropLast(2) == self.engine(.unknown).explain()[...], "it changes nothing else")
        #expect(decisions.suffix(2).map(\.rule) == ["group = team", "group = ops"])
        #expect(decisions.suffix(2).allSatisfy { $0.action == .group && $0.outcome == .allow })
        #expect(decisions.last?.reason.contains("its files there are accepted") == true)
        let asking = self.engine(.unknown).explain(in: ["team"], files: .ask).last
        #expect(asking?.reason.contains("a user decides about its files there") == true)
        let blocked = self.engine(.blocked).explain(in: ["team"]).last
        #expect(blocked?.action == .group && blocked?.outcome == .deny && blocked?.rule == "trust = blocked")
    }

    /// The decisions about sending with `earshot send`, and about data from a peer that has to invite first.
    @Test func withoutASessionTheInvitationsRuleDecides() {
        func outcomes(_ engine: PolicyEngine) -> [PolicyDecision.Outcome] { engine.explain().map(\.outcome) }
        func rules(_ engine: PolicyEngine) -> [String] { engine.explain().map(\.rule) }
        let trusted = self.engine(.trusted, source: .person)
        #expect(outcomes(trusted) == [.allow, .allow, .allow, .allow, .allow, .allow])
        let accept = "invitations.from_trusted = accept"
        #expect(rules(trusted) == ["peer.encryption = required", "trust = trusted", accept, accept, accept, accept])
        #expect(rules(self.engine(.trusted, source: .authority))[1] == "identity.authorities")
        #expect(outcomes(self.engine(.trusted) { $0.fromTrusted = .ask }) == [.allow, .allow, .ask, .ask, .ask, .ask])
        #expect(outcomes(self.engine(.trusted) { $0.fromTrusted = .reject }) == [.allow, .allow, .deny, .deny, .deny, .deny])
        #expect(outcomes(self.engine(.trusted) { $0.acceptResources = .ask }) == [.allow, .allow, .allow, .allow, .ask, .allow])
        #expect(outcomes(self.engine(.unknown)) == [.allow, .deny, .ask, .ask, .ask, .ask])
        #expect(rules(self.engine(.unknown))[1] == "trust = unknown")
        #expect(outcomes(self.engine(.unknown) { $0.pairedOnly = true }) == [.allow, .deny, .deny, .deny, .deny, .deny])
        #expect(outcomes(self.engine(.unknown, hasSession: true)) == [.allow, .allow, .ask, .allow, .allow, .allow])
    }

    @Test func encryptionIsExplained() {
        func reason(_ preference: EncryptionPreference, _ isTLSPinned: Bool = false) -> String {
            self.engine(.unknown, isTLSPinned: isTLSPinned) { $0.encryption = preference }.explain()[0].reason
        }
        #expect(reason(.required) == "over TLS only")
        #expect(reason(.optional, true).contains("has used TLS before"))
        #expect(reason(.optional).contains("else in plaintext"))
        #expect(reason(.none).contains("in plaintext only"))
    }

    @Test func anEndOfTrustIsNamed() {
        let engine = self.engine(.trusted, source: .person, trustedUntil: WallTime(milliseconds: 1_785_585_600_999))
        #expect(engine.explain()[1].reason == "it is trusted until 2026-08-01T12:00:00Z, so it is invited to a session first")
    }
}
