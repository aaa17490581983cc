import EarshotWire
import Testing

@testable import EarshotCore
@testable import EarshotWire

extension CoreBench {
    /// Makes a core that accepts every invitation, with an attached session on a connection. Frames sent so far are dropped.
    static func inSession(
        with peer: PeerID, extensions: [HelloExtension] = [], change: (inout CoreSettings) -> Void = { _ in }
    ) throws -> (bench: CoreBench, link: LinkID, session: SessionID) {
        var bench = CoreBench {
            $0.policy.fromUnknown = .accept
            change(&$0)
        }
        let link = try bench.prove(peer, extensions: extensions)
        let session = try bench.join(on: link)
        bench.frame(.sessionResume(session), on: link)
        _ = bench.sent(on: link)
        return (bench, link, session)
    }

    /// Lets a connected peer join a session, by the settings or by a user's answer.
    mutating func join(on link: LinkID) throws -> SessionID {
        let id = self.invite(on: link)
        if self.core.invitations[id]?.invitation.state == .pending { self.call(.respond(id, .accept, always: false)) }
        guard case .accepted(let session)? = self.inviteAnswer(on: link)?.decision else {
            Issue.record("not let in")
            return SessionID(high: 0, low: 0)
        }
        return session
    }

    /// Resumes a peer's session on a new connection.
    mutating func resume(_ session: SessionID, with peer: PeerID, extensions: [HelloExtension] = []) throws -> LinkID {
        let link = try self.prove(peer, extensions: extensions)
        self.frame(.sessionResume(session), on: link)
        return link
    }
}
