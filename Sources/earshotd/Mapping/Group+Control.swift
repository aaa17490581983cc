internal import Earshot
internal import EarshotClient
internal import EarshotWire

extension ControlAPI.Group {
    /// Creates the API's value of a group.
    init(_ group: Group) {
        self.init(
            id: group.id, name: group.name, creator: group.creator, closed: group.isClosed,
            unprotected: group.isUnprotected, state: Tolerant(group.state), role: Tolerant(group.role),
            members: group.members.map(ControlAPI.GroupMember.init), removalsLeft: group.removalsLeft, createdAt: group.createdAt)
    }
}

extension ControlAPI.GroupMember {
    /// Creates the API's value of a member.
    init(_ member: Group.Member) {
        self.init(
            peerID: member.peerID, name: member.name, state: Tolerant(member.state),
            error: ControlAPI.Failure(code: member.error?.code, message: member.error?.message), joinedAt: member.joinedAt,
            invitedBy: member.invitedBy)
    }
}

extension ControlAPI.GroupLabel {
    /// Creates the API's reference to the group of a message or transfer.
    init(_ label: GroupLabel) { self.init(id: label.id, name: label.name) }

    /// Creates the API's reference to the group of an invitation.
    init(_ group: InvitedGroup) {
        self.init(id: group.id, name: group.name, creator: group.creator, members: group.members)
    }
}
