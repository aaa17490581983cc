import ArgumentParser
import Dispatch
import EarshotClient
import Glibc

/// Completion by what the daemon knows: asked when Tab is pressed, silent when it does not answer.
extension CompletionKind {
    /// Peers that may be asked for a session.
    static var invitablePeer: CompletionKind {
        .daemon { source in source.peers { $0.trust != .blocked && $0.presence == .nearby && $0.state == .notConnected } }
    }
    /// Peers whose trust is not this one already.
    static func peer(notYet trust: ControlAPI.Trust?) -> CompletionKind {
        .daemon { source in source.peers { trust == nil || $0.trust.known != trust } }
    }
    /// Peers whose trust is this one.
    static func peer(_ trust: ControlAPI.Trust) -> CompletionKind { .daemon { source in source.peers { $0.trust == .known(trust) } } }
    /// Peers that proved who they are.
    static var provenPeer: CompletionKind { .daemon { source in source.peers(where: \.proven) } }
    /// Members of sessions.
    static var member: CompletionKind { .daemon(\.members) }
    /// Whom something can be sent to.
    static var reachablePeer: CompletionKind { .daemon(\.reachable) }
    /// Whose invitation waits for an answer.
    static var inviter: CompletionKind { .daemon(\.inviters) }
    /// Groups that this machine is in.
    static var group: CompletionKind { .daemon(\.groupNames) }
    /// Members of groups.
    static var groupMember: CompletionKind { .daemon(\.groupMembers) }
    /// Peers that may be asked to join a group.
    static var groupInvitablePeer: CompletionKind { .daemon { source in source.peers { $0.trust != .blocked && $0.presence == .nearby } } }
    /// Files that wait to be fetched.
    static var fetchableFile: CompletionKind { .daemon { source in source.files(where: \.isFetchable) } }
    /// Files on their way.
    static var runningFile: CompletionKind { .daemon { source in source.files { !$0.isOver } } }
    /// Files that wait to be accepted.
    static var offeredFile: CompletionKind {
        .daemon { source in source.files { $0.direction == .incoming && $0.state == .offered } }
    }

    /// How long a person who pressed Tab waits at most, in milliseconds.
    static var patience: Int { 900 }

    private static func daemon(_ words: @escaping @Sendable (CompletionSource) -> [CompletionWord]) -> CompletionKind {
        .custom { line, _, _ in
            // The process serves this one question: ending it is the surest limit.
            DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(Self.patience)) { _exit(ExitStatus.done.rawValue) }
            let path = ControlSocket.path(given: CompletionLine.socket(in: line))
            let source = try? await ControlClient.with(socketPath: path) { client in
                CompletionSource(
                    peers: try await client.peers().value.peers, sessions: try await client.sessions().value.sessions,
                    invitations: try await client.invitations().value.invitations, resources: try await client.resources().value.resources,
                    groups: (try? await client.groups().value.groups) ?? [])
            }
            guard let source else { return [] }
            return words(source).map { $0.line(for: CompletionShell.requesting) }
        }
    }
}
