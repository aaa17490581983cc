internal import Earshot
internal import EarshotClient
internal import EarshotWire
internal import NIOCore

extension ControlAPI.Message {
    /// Creates the API's value of a message.
    init(_ message: Message) {
        let isOutgoing = message.direction == .outgoing
        self.init(
            id: message.id, direction: Tolerant(message.direction),
            sender: Sender(id: message.senderID, name: message.senderName),
            to: isOutgoing ? message.recipients.map(\.peerID) : nil, body: Array(message.body.readableBytesView),
            contentType: message.contentType, mode: Tolerant(message.mode), sentAt: message.sentAt, receivedAt: message.receivedAt,
            state: Tolerant(message.readState), recipients: isOutgoing ? message.recipients.map(ControlAPI.Recipient.init) : nil,
            group: message.group.map(ControlAPI.GroupLabel.init), inReplyTo: message.inReplyTo)
    }
}

extension ControlAPI.Recipient {
    /// Creates the API's value of a recipient.
    init(_ recipient: Message.Recipient) {
        self.init(
            peerID: recipient.peerID, status: Tolerant(recipient.status),
            error: ControlAPI.Failure(code: recipient.error, message: recipient.errorMessage))
    }
}
