import AsyncHTTPClient
public import EarshotWire
import NIOHTTP1

/// The calls about groups. A group is named by its id (`GroupID`), by at least the first 8 characters of the id, or by its name.
extension ControlClient {
    /// `POST /v1/groups`
    public func createGroup(_ request: ControlAPI.GroupRequest) async throws(ControlError) -> ControlReply<ControlAPI.Group> {
        try await self.call(.POST, ControlPath.path(["groups"]), body: try Self.json(request), as: ControlAPI.Group.self)
    }

    /// `GET /v1/groups`
    public func groups() async throws(ControlError) -> ControlReply<ControlAPI.GroupList> {
        try await self.call(.GET, ControlPath.path(["groups"]), as: ControlAPI.GroupList.self)
    }

    /// `GET /v1/groups/{group}`
    public func group(_ group: any GroupReference) async throws(ControlError) -> ControlReply<ControlAPI.Group> {
        try await self.call(.GET, ControlPath.path(["groups", group.description]), as: ControlAPI.Group.self)
    }

    /// `PATCH /v1/groups/{group}`
    @discardableResult
    public func renameGroup(_ group: any GroupReference, to name: String) async throws(ControlError) -> ControlReply<ControlAPI.Group> {
        let body = try Self.json(ControlAPI.GroupChange(name: name))
        return try await self.call(.PATCH, ControlPath.path(["groups", group.description]), body: body, as: ControlAPI.Group.self)
    }

    /// `DELETE /v1/groups/{group}`: leaves the group, or dissolves it.
    public func leaveGroup(_ group: any GroupReference, dissolve: Bool = false) async throws(ControlError) {
        try await self.perform(.DELETE, ControlPath.path(["groups", group.description], query: [("dissolve", dissolve ? "true" : nil)]))
    }

    /// `POST /v1/groups/{group}/invitations`; with `wait`, answers when all invitations are decided. Context and timeout are the same as for
    /// ``invite(_:context:timeout:wait:)``.
    @discardableResult
    public func invite(
        _ peers: [any PeerReference], to group: any GroupReference, context: [UInt8] = [], timeout: Duration? = nil, wait: Bool = false
    ) async throws(ControlError) -> ControlReply<ControlAPI.InvitationList> {
        let path = ControlPath.path(["groups", group.description, "invitations"], query: [("wait", wait ? "true" : nil)])
        let request = ControlAPI.GroupInvitationRequest(
            peers: peers.map(\.description), context: context.isEmpty ? nil : Base64Bytes(context), timeout: timeout)
        return try await self.call(.POST, path, body: try Self.json(request), as: ControlAPI.InvitationList.self)
    }

    /// `DELETE /v1/groups/{group}/members/{peer}`: removes a member, and on request all members that it invited.
    @discardableResult
    public func removeMember(
        _ peer: any PeerReference, from group: any GroupReference, withInvited: Bool = false
    ) async throws(ControlError) -> ControlReply<ControlAPI.Group> {
        let path = ControlPath.path(
            ["groups", group.description, "members", peer.description], query: [("invited", withInvited ? "true" : nil)])
        return try await self.call(.DELETE, path, as: ControlAPI.Group.self)
    }
}
