import EarshotWire
import Testing

@testable import EarshotCore
@testable import EarshotWire

extension CoreBench {
    /// A core that lets everyone in, in a session with a peer that speaks of it on a connection; what was sent meanwhile is gone.
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

    /// A peer that has proven its key joins a session, as the settings or a person let it in.
    mutating func join(on link: LinkID) throws -> SessionID {
        let id = self.invite(on: link)
        if self.core.invitations[id]?.invitation.state == .pending { self.call(.respond(id, .accept, always: false)) }
        guard case .accepted(let session)? = self.inviteAnswer(on: link)?.decision else {
            Issue.record("not let in")
            return SessionID(high: 0, low: 0)
        }
        return session
    }

    /// A peer takes a session up again on a new connection.
    mutating func resume(_ session: SessionID, with peer: PeerID, extensions: [HelloExtension] = []) throws -> LinkID {
        let link = try self.prove(peer, extensions: extensions)
        self.frame(.sessionResume(session), on: link)
        return link
    }
}
