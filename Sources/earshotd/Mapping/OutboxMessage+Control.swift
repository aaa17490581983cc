internal import Earshot
internal import EarshotClient

extension ControlAPI.OutboxMessage {
    /// A message that waits as the API shows it.
    init(_ message: OutboxMessage) {
        self.init(
            messageID: message.id.description, contentType: message.contentType, size: message.size,
            recipients: message.recipients.map(ControlAPI.Recipient.init), group: message.group.map(ControlAPI.GroupLabel.init),
            sentAt: message.sentAt, expiresAt: message.expiresAt)
    }
}
