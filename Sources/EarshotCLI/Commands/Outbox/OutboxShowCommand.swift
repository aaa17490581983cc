import ArgumentParser
import EarshotClient
import EarshotSafety

struct OutboxShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Show the status of a sent message at each recipient.")

    @Argument(help: ArgumentHelp("The message's id; of a queued message, the first 8 characters suffice.", valueName: "id"))
    var message: String
    @OptionGroup var options: GlobalOptions

    mutating func run() async throws {
        let (options, text) = (self.options, self.message)
        try await options.withClient { client in
            let id: MessageID
            if let whole = MessageID(text) {
                id = whole
            } else {
                id = try OutboxCancelCommand.find(text, in: try await client.outbox().messages)
            }
            let message = try await client.message(id)
            guard let recipients = message.value.recipients else {
                throw CommandFailure(.data, "\(id) was received, not sent", hint: "show it: earshot receive --all")
            }
            if options.json { return try Standard.write(json: message.json) }
            try Render.recipients(recipients, names: try await client.peerNames()).show(empty: "no recipients")
        }
    }
}

extension Render {
    static func recipients(_ recipients: [ControlAPI.Recipient], names: [PeerID: String]) -> Table {
        Table(
            [.init(title: "TO", isFlexible: true), .init(title: "STATUS"), .init(title: "WHY", isFlexible: true)],
            rows: recipients.map { recipient in
                [names[recipient.peerID] ?? Words.short(recipient.peerID), recipient.status.rawValue, recipient.error?.message ?? "-"]
            })
    }
}
