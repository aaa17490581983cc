internal import Earshot
internal import EarshotClient
internal import EarshotWire

extension ControlAPI.Invitation {
    /// Creates the API's value of an invitation.
    init(_ invitation: Invitation) {
        self.init(
            id: invitation.id, direction: Tolerant(invitation.direction), peerID: invitation.peerID,
            peerName: invitation.peerName, context: Base64Bytes(invitation.context), state: Tolerant(invitation.state),
            error: ControlAPI.Failure(code: invitation.error, message: invitation.errorMessage), createdAt: invitation.createdAt,
            expiresAt: invitation.expiresAt, sessionID: invitation.sessionID,
            group: invitation.group.map(ControlAPI.GroupLabel.init),
            offer: invitation.offer?.map { ControlAPI.OfferedFile(name: $0.name, size: $0.size, contentType: $0.contentType) })
    }
}
