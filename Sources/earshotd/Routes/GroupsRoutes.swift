internal import Earshot
internal import EarshotClient
internal import EarshotWire
internal import HTTPTypes
internal import Hummingbird
internal import HummingbirdCore

/// `/v1/groups`: conversations of several peers.
struct GroupsRoutes: Sendable {
    let api: ControlAPIServices

    init(_ api: ControlAPIServices) { self.api = api }

    var routes: [Route] {
        [
            Route(.post, "/v1/groups") { request, _ in
                let body = try await request.json(ControlAPI.GroupRequest.self)
                let group = try await self.api.node.createGroup(
                    name: body.name, isClosed: body.closed ?? false, isUnprotected: body.unprotected ?? false)
                return try .json(ControlAPI.Group(group), status: .created)
            },
            Route(.get, "/v1/groups") { _, _ in
                try .json(ControlAPI.GroupList(groups: await self.api.node.groups().map(ControlAPI.Group.init)))
            },
            Route(.get, "/v1/groups/:group") { _, context in
                try .json(ControlAPI.Group(try await self.api.node.group(context.parameter("group"))))
            },
            Route(.patch, "/v1/groups/:group") { request, context in
                let group = try context.parameter("group")
                let body = try await request.json(ControlAPI.GroupChange.self)
                return try .json(ControlAPI.Group(try await self.api.node.renameGroup(group, to: body.name)))
            },
            Route(.delete, "/v1/groups/:group") { request, context in
                let group = try context.parameter("group")
                if try Query(request).flag("dissolve") {
                    try await self.api.node.dissolveGroup(group)
                } else {
                    try await self.api.node.leaveGroup(group)
                }
                return .noContent
            },
            Route(.post, "/v1/groups/:group/invitations", self.invite),
            Route(.delete, "/v1/groups/:group/members/:peer") { request, context in
                let (group, peer) = (try context.parameter("group"), try context.parameter("peer"))
                let withInvited = try Query(request).flag("invited")
                return try .json(ControlAPI.Group(try await self.api.node.removeMember(peer, from: group, withInvited: withInvited)))
            },
        ]
    }

    private func invite(_ request: Request, _ context: APIContext) async throws -> Response {
        let group = try context.parameter("group")
        let waits = try Query(request).flag("wait")
        let body = try await request.json(ControlAPI.GroupInvitationRequest.self)
        guard !body.peers.isEmpty, !body.peers.contains("") else { throw APIProblem.namesNobody("peers") }
        var invitations = try await self.api.node.invite(
            body.peers, toGroup: group, context: try InvitationsRoutes.context(body.context),
            timeout: try InvitationsRoutes.timeout(body.timeoutSeconds))
        let isSettled = invitations.allSatisfy { $0.state == .accepted }
        if waits {
            invitations = try await ClientPresence.required(on: context.channel) { [invitations] in try await self.decided(invitations) }
        }
        return try .json(
            ControlAPI.InvitationList(invitations: invitations.map(ControlAPI.Invitation.init)), status: isSettled || waits ? .ok : .created
        )
    }

    /// Returns all invitations, in their order, once they are decided. They remain pending until they are decided or withdrawn, even if the
    /// client leaves.
    private func decided(_ invitations: [Invitation]) async throws -> [Invitation] {
        let node = self.api.node
        return try await withThrowingTaskGroup { tasks in
            // Waits for all at once, since only a limited number of decided invitations is kept.
            for (index, invitation) in invitations.enumerated() where invitation.state == .pending {
                tasks.addTask { (index, try await node.outcome(of: invitation.id)) }
            }
            var result = invitations
            for try await (index, invitation) in tasks { result[index] = invitation }
            return result
        }
    }
}
