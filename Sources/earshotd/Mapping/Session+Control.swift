internal import Earshot
internal import EarshotClient
internal import EarshotWire

extension ControlAPI.Session {
    /// A session as the API shows it.
    init(_ session: Session) {
        self.init(
            id: session.id.description,
            members: session.members.map { member in
                ControlAPI.Member(
                    peerID: member.peerID.description, name: member.name, state: Tolerant(member.state),
                    protection: member.protection.map { Tolerant($0) })
            },
            createdAt: session.createdAt)
    }
}
