import ArgumentParser
import EarshotClient
import EarshotSafety

struct OutboxCancelCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cancel", abstract: "Cancel queued messages for all recipients that have not received them.")

    @Argument(help: ArgumentHelp("The message's id (first 8 characters suffice).", valueName: "id"))
    var messages: [String]
    @OptionGroup var options: GlobalOptions

    mutating func run() async throws {
        let (options, messages) = (self.options, self.messages)
        try await options.withClient { client in
            let waiting = try await client.outbox().messages
            for id in try messages.map({ try Self.find($0, in: waiting) }) {
                let receipt = try await client.cancelQueued(id)
                if options.json { try Standard.write(json: receipt.json) }
                for recipient in receipt.value.recipients where recipient.status == .unconfirmed {
                    Standard.note("\(Words.short(id)): \(recipient.error?.message.escapedForDisplay ?? "it may have been sent")")
                }
            }
        }
    }

    /// The id of the message that the text names.
    static func find(_ text: String, in waiting: [ControlAPI.OutboxMessage]) throws(CommandFailure) -> MessageID {
        try waiting.named(text, by: \.messageID, "queued message", list: "earshot outbox list") { $0.messageID.description }.messageID
    }
}
