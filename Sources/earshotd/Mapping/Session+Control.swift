internal import Earshot
internal import EarshotClient
internal import EarshotWire

extension ControlAPI.Session {
    /// Creates the API's value of a session.
    init(_ session: Session) {
        self.init(
            id: session.id,
            members: session.members.map { member in
                ControlAPI.Member(
                    peerID: member.peerID, name: member.name, state: Tolerant(member.state),
                    protection: member.protection.map { Tolerant($0) })
            },
            createdAt: session.createdAt)
    }
}
