import ArgumentParser
import EarshotClient
import EarshotSafety

struct OutboxCancelCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cancel", abstract: "Cancel queued messages for all recipients that have not received them.")

    /// The fewest characters of an id that name a message: the sender may have chosen the id.
    static let idPrefixMinimum = 8

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
        let id = text.lowercased()
        let matches = waiting.map(\.messageID).filter { $0.isNamed(id, atLeast: Self.idPrefixMinimum) }
        guard let match = matches.first(where: { $0.description == id }) ?? matches.first else {
            throw CommandFailure(
                .data, "no such queued message: \(text.escapedForDisplay)", hint: "list the queued messages: earshot outbox list")
        }
        guard match.description == id || matches.count == 1 else {
            throw CommandFailure(
                .data, "\(text.escapedForDisplay) matches several messages",
                hint: (["give more of the id:"] + matches.map { "  \($0)" }).joined(separator: "\n"))
        }
        return match
    }
}
