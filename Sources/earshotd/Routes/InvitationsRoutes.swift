internal import Earshot
internal import EarshotClient
internal import EarshotWire
internal import HTTPTypes
internal import Hummingbird
internal import HummingbirdCore

/// `/v1/invitations`: inviting peers, and answering their invitations.
struct InvitationsRoutes: Sendable {
    let api: ControlAPIServices

    init(_ api: ControlAPIServices) { self.api = api }

    var routes: [Route] {
        [
            Route(.get, "/v1/invitations") { request, _ in
                let all = try Query(request).choice("state", ["pending", "all"]) == "all"
                let invitations = await self.api.node.invitations(all: all).map(ControlAPI.Invitation.init)
                return try .json(ControlAPI.InvitationList(invitations: invitations))
            },
            Route(.post, "/v1/invitations", self.invite),
            Route(.get, "/v1/invitations/:id") { _, context in
                let id: InvitationID = try context.identifier("an invitation")
                return try .json(ControlAPI.Invitation(try await self.api.node.invitation(id)))
            },
            Route(.delete, "/v1/invitations/:id") { _, context in
                let id: InvitationID = try context.identifier("an invitation")
                return try .json(ControlAPI.Invitation(try await self.api.node.withdraw(id)))
            },
            Route(.post, "/v1/invitations/:id/response", self.respond),
        ]
    }

    private func invite(_ request: Request, _ context: APIContext) async throws -> Response {
        let waits = try Query(request).flag("wait")
        let body = try await request.json(ControlAPI.InvitationRequest.self)
        guard !body.peer.isEmpty else { throw APIProblem.isEmpty("peer") }
        let invitation = try await self.api.node.invite(
            body.peer, context: try Self.context(body.context), timeout: try Self.timeout(body.timeoutSeconds))
        guard invitation.state == .pending, waits else {
            return try .json(ControlAPI.Invitation(invitation), status: invitation.state == .accepted || waits ? .ok : .created)
        }
        // The invitation remains pending until it is decided or withdrawn, even if the client leaves.
        let decided = try await ClientPresence.required(on: context.channel) { try await self.api.node.outcome(of: invitation.id) }
        return try .json(ControlAPI.Invitation(decided))
    }

    /// Returns an inviter's context, within its limit.
    static func context(_ context: Base64Bytes?) throws(APIProblem) -> [UInt8] {
        let bytes = context?.bytes ?? []
        guard bytes.count <= WireLimits.invitationContext else {
            throw APIProblem(.invalidParameter, "`context` is at most \(WireLimits.invitationContext) bytes, not \(bytes.count)")
        }
        return bytes
    }

    /// Returns the timeout of an invitation; `nil` for the default, which 0 or less also means.
    static func timeout(_ seconds: Double?) throws(APIProblem) -> Duration? {
        guard let seconds else { return nil }
        let timeout = try Duration.request(seconds, field: "timeout_seconds", atMost: EarshotLimits.invitationTimeout)
        return timeout > .zero ? timeout : nil
    }

    private func respond(_ request: Request, _ context: APIContext) async throws -> Response {
        let id: InvitationID = try context.identifier("an invitation")
        let body = try await request.json(ControlAPI.InvitationResponse.self)
        guard let decision = Invitation.Decision(rawValue: body.decision.rawValue) else {
            throw APIProblem(.invalidParameter, "`decision` is one of accept, reject, block")
        }
        let always = body.always ?? false
        guard !always || decision == .accept else { throw APIProblem(.invalidParameter, "`always` goes with the decision accept") }
        return try .json(ControlAPI.Invitation(try await self.api.node.respond(to: id, decision, always: always)))
    }
}
