import EarshotWire
import Foundation
import Testing

@testable import Earshot

@Suite struct PolicyEngineTests {
    private func engine(
        _ trust: Trust, source: TrustSource? = nil, verified: Verified? = nil, hasSession: Bool = false, isInviting: Bool = false,
        hasSpokenTLS: Bool = false, _ configure: (inout Node.Configuration) -> Void = { _ in }
    ) throws -> PolicyEngine {
        var configuration = Node.Configuration(
            displayName: try DisplayName("alice"), serviceType: try ServiceType("earshot"), stateDirectory: "/nowhere")
        configure(&configuration)
        return PolicyEngine(
            facts: PolicyEngine.Facts(
                trust: trust, source: source, trustedUntil: nil, verified: verified, hasSession: hasSession, hasSpokenTLS: hasSpokenTLS,
                isInviting: isInviting), configuration: configuration)
    }

    @Test func invitationsGoByTheRulesInTheirOrder() throws {
        #expect(try self.engine(.unknown).invitation().outcome == .ask)
        #expect(try self.engine(.unknown) { $0.fromUnknown = .accept }.invitation().outcome == .accept)
        #expect(try self.engine(.unknown) { $0.fromUnknown = .reject }.invitation().outcome == .reject)
        #expect(try self.engine(.unknown, verified: .mismatched) { $0.fromUnknown = .accept }.invitation().outcome == .ask)
        #expect(try self.engine(.trusted).invitation().outcome == .accept)
        #expect(try self.engine(.trusted) { $0.fromTrusted = .ask }.invitation().outcome == .ask)
        #expect(try self.engine(.trusted) { $0.pairedOnly = true }.invitation().outcome == .accept)
        #expect(try self.engine(.unknown) { $0.pairedOnly = true }.invitation().outcome == .hide)
        #expect(
            try self.engine(.unknown) {
                $0.pairedOnly = true
                $0.fromUnknown = .accept
            }.invitation().outcome == .hide)
        #expect(try self.engine(.unknown, isInviting: true) { $0.pairedOnly = true }.invitation().outcome == .accept)
        #expect(try self.engine(.blocked, isInviting: true).invitation().outcome == .hide)
    }

    @Test func everyActionIsExplainedByARule() throws {
        for trust in Trust.allCases {
            for hasSession in [false, true] {
                let decisions = try self.engine(trust, hasSession: hasSession).explain()
                #expect(decisions.map(\.action) == PolicyDecision.Action.allCases)
                #expect(decisions.allSatisfy { !$0.rule.isEmpty && !$0.reason.isEmpty && !$0.reason.hasSuffix(".") })
                if trust == .blocked { #expect(decisions.allSatisfy { $0.outcome == .deny && $0.rule == "trust = blocked" }) }
            }
        }
        let outcomes = try self.engine(.unknown, hasSession: true) { $0.acceptResources = .ask }.explain().map(\.outcome)
        #expect(outcomes == [.allow, .allow, .ask, .allow, .ask, .allow])
    }

    /// What `earshot send` does to whom, and what becomes of what a peer sends that has to invite first.
    @Test func withoutASessionTheInvitationsRuleDecides() throws {
        func outcomes(_ engine: PolicyEngine) -> [PolicyDecision.Outcome] { engine.explain().map(\.outcome) }
        func rules(_ engine: PolicyEngine) -> [String] { engine.explain().map(\.rule) }
        let trusted = try self.engine(.trusted, source: .person)
        #expect(outcomes(trusted) == [.allow, .allow, .allow, .allow, .allow, .allow])
        let accept = "invitations.from_trusted = accept"
        #expect(rules(trusted) == ["peer.encryption = required", "trust = trusted", accept, accept, accept, accept])
        #expect(try rules(self.engine(.trusted, source: .authority))[1] == "identity.authorities")
        #expect(try outcomes(self.engine(.trusted) { $0.fromTrusted = .ask }) == [.allow, .allow, .ask, .ask, .ask, .ask])
        #expect(try outcomes(self.engine(.trusted) { $0.fromTrusted = .reject }) == [.allow, .allow, .deny, .deny, .deny, .deny])
        #expect(try outcomes(self.engine(.trusted) { $0.acceptResources = .ask }) == [.allow, .allow, .allow, .allow, .ask, .allow])
        #expect(try outcomes(self.engine(.unknown)) == [.allow, .deny, .ask, .ask, .ask, .ask])
        #expect(try rules(self.engine(.unknown))[1] == "trust = unknown")
        #expect(try outcomes(self.engine(.unknown) { $0.pairedOnly = true }) == [.allow, .deny, .deny, .deny, .deny, .deny])
        #expect(try outcomes(self.engine(.unknown, hasSession: true)) == [.allow, .allow, .ask, .allow, .allow, .allow])
    }

    @Test func encryptionIsExplained() throws {
        func reason(_ preference: EncryptionPreference, _ hasSpokenTLS: Bool = false) throws -> String {
            try self.engine(.unknown, hasSpokenTLS: hasSpokenTLS) { $0.encryption = preference }.explain()[0].reason
        }
        #expect(try reason(.required) == "over TLS only")
        #expect(try reason(.optional, true).contains("has spoken TLS before"))
        #expect(try reason(.optional).contains("else in plaintext"))
        #expect(try reason(.none).contains("in plaintext only"))
    }
}
