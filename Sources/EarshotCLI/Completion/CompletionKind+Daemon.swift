import ArgumentParser
import Dispatch
import EarshotClient
import Glibc

/// Completion from the daemon's data. The daemon is asked when the user presses Tab; without an answer, nothing is offered.
extension CompletionKind {
    /// Peers that can be invited to a session.
    static var invitablePeer: CompletionKind {
        .daemon { source in source.peers { $0.trust != .blocked && $0.presence == .nearby && $0.state == .notConnected } }
    }
    /// Peers whose trust differs from the given one.
    static func peer(notYet trust: ControlAPI.Trust?) -> CompletionKind {
        .daemon { source in source.peers { trust == nil || $0.trust.known != trust } }
    }
    /// Peers with the given trust.
    static func peer(_ trust: ControlAPI.Trust) -> CompletionKind { .daemon { source in source.peers { $0.trust == .known(trust) } } }
    /// Peers that have proven their keys.
    static var provenPeer: CompletionKind { .daemon { source in source.peers(where: \.proven) } }
    /// Members of sessions.
    static var member: CompletionKind { .daemon(\.members) }
    /// Peers that something can be sent to.
    static var reachablePeer: CompletionKind { .daemon(\.reachable) }
    /// Peers with a pending invitation.
    static var inviter: CompletionKind { .daemon(\.inviters) }
    /// Groups that this machine is in.
    static var group: CompletionKind { .daemon(\.groupNames) }
    /// Members of groups.
    static var groupMember: CompletionKind { .daemon(\.groupMembers) }
    /// Peers that can be invited to a group.
    static var groupInvitablePeer: CompletionKind { .daemon { source in source.peers { $0.trust != .blocked && $0.presence == .nearby } } }
    /// Files that can be fetched.
    static var fetchableFile: CompletionKind { .daemon { source in source.files(where: \.isFetchable) } }
    /// Files in transfer.
    static var runningFile: CompletionKind { .daemon { source in source.files { !$0.isOver } } }
    /// Offered files that are pending here.
    static var offeredFile: CompletionKind {
        .daemon { source in source.files { $0.direction == .incoming && $0.state == .offered } }
    }

    /// The longest time that a user who pressed Tab waits, in milliseconds.
    static var patience: Int { 900 }

    /// Ends the process, without words to offer, when the user has waited long enough. The process serves this one request: ending it is
    /// the surest limit.
    static func limitTime() {
        DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(Self.patience)) { _exit(ExitStatus.done.rawValue) }
    }

    private static func daemon(_ words: @escaping @Sendable (CompletionSource) -> [CompletionWord]) -> CompletionKind {
        .custom { line, _, _ in
            Self.limitTime()
            let path = ControlSocket.path(given: CompletionLine.socket(in: line))
            let source = try? await ControlClient.with(socketPath: path) { client in
                CompletionSource(
                    peers: try await client.peers().peers, sessions: try await client.sessions().sessions,
                    invitations: try await client.invitations().invitations, resources: try await client.resources().resources,
                    groups: (try? await client.groups().groups) ?? [])
            }
            guard let source else { return [] }
            return words(source).map { $0.line(for: CompletionShell.requesting) }
        }
    }
}
