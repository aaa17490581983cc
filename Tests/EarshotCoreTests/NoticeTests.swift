import EarshotWire
import Testing

@testable import EarshotCore

/// The log lines at level info that an administrator needs: which peers were admitted, when, and by whom.
@Suite struct NoticeTests {
    private let alice = peerID(1)

    /// Returns the notices at level info and above about the peer, with their text and some of their details.
    private func lines(_ bench: CoreBench, _ details: String...) -> [String] {
        bench.notices.filter { $0.level != .debug && $0.details.contains { $0.name == "peer" && $0.value == self.alice.description } }.map {
            notice in
            let shown = details.compactMap { name in notice.details.first { $0.name == name }.map { "\(name)=\($0.value)" } }
            return ([notice.text] + shown).joined(separator: " ")
        }
    }

    @Test func aPersonLetsAPeerInAndTakesThatBack() throws {
        var bob = CoreBench()
        let link = try bob.prove(self.alice)
        let session = try bob.join(on: link)
        bob.frame(.sessionResume(session), on: link)
        bob.call(.leave(session))
        let lines = self.lines(bob, "decision", "rule", "by")
        #expect(
            lines == [
                "an invitation came in decision=ask rule=invitations.from_unknown = ask",
                "a session stands",
                "an invitation was accepted by=a user",
                "a session ended by=this machine",
            ])
        #expect(bob.notices.allSatisfy { notice in notice.level == .debug || notice.details.contains { $0.name == "name" } })
    }

    @Test func theSettingsLetAPeerInAndThePeerLeaves() throws {
        var (bob, link, session) = try CoreBench.inSession(with: self.alice)
        bob.frame(.sessionEnd(session), on: link)
        #expect(
            self.lines(bob, "rule", "by") == [
                "an invitation came in rule=invitations.from_unknown = accept",
                "a session stands",
                "an invitation was accepted by=invitations.from_unknown = accept",
                "a session ended by=the peer",
            ])
    }

    @Test func trustBlocksAndRefusalsAreTold() throws {
        var bob = CoreBench { $0.policy.fromUnknown = .reject }
        let link = try bob.prove(self.alice)
        _ = bob.invite(on: link)
        bob.call(.setTrust(.trusted, self.alice.description, until: nil))
        bob.call(.setTrust(.blocked, self.alice.description, until: nil))
        #expect(
            self.lines(bob, "decision", "state", "trust", "before") == [
                "an invitation came in decision=deny",
                "an invitation of a peer ended state=declined",
                "a user has decided about a peer trust=trusted before=unknown",
                "a user has decided about a peer trust=blocked before=trusted",
            ])
    }
}
