internal import Earshot
internal import EarshotClient
internal import EarshotWire

extension ControlAPI.Group {
    /// A group as the API shows it.
    init(_ group: Group) {
        self.init(
            id: group.id.description, name: group.name, creator: group.creator.description, closed: group.isClosed,
            unprotected: group.isUnprotected, state: Tolerant(group.state), role: Tolerant(group.role),
            members: group.members.map(ControlAPI.GroupMember.init), removalsLeft: group.removalsLeft, createdAt: group.createdAt)
    }
}

extension ControlAPI.GroupMember {
    /// A member as the API shows it.
    init(_ member: Group.Member) {
        self.init(
            peerID: member.peerID.description, name: member.name, state: Tolerant(member.state),
            error: ControlAPI.Failure(code: member.error?.code, message: member.error?.message), joinedAt: member.joinedAt,
            invitedBy: member.invitedBy.description)
    }
}

extension ControlAPI.GroupLabel {
    /// The group of something that was said in it.
    init(_ label: GroupLabel) { self.init(id: label.id.description, name: label.name) }

    /// The group that an invitation is to.
    init(_ group: InvitedGroup) {
        self.init(id: group.id.description, name: group.name, creator: group.creator.description, members: group.members)
    }
}
