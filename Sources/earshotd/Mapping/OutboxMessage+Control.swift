internal import Earshot
internal import EarshotClient

extension ControlAPI.OutboxMessage {
    /// Creates the API's value of a queued message.
    init(_ message: OutboxMessage) {
        self.init(
            messageID: message.id, contentType: message.contentType, size: message.size,
            recipients: message.recipients.map(ControlAPI.Recipient.init), group: message.group.map(ControlAPI.GroupLabel.init),
            inReplyTo: message.inReplyTo, sentAt: message.sentAt, expiresAt: message.expiresAt)
    }
}
