import ArgumentParser
import EarshotClient

struct OutboxListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List queued messages, oldest first.")

    @Flag(name: .long, help: "Keep running and print changes of messages' states.")
    var watch = false
    @OptionGroup var options: GlobalOptions

    mutating func run() async throws {
        try await self.options.list(watch: self.watch) { client in
            try await client.outbox()
        } show: { outbox, client in
            let names = outbox.messages.isEmpty ? [:] : try await client.peerNames()
            try Render.outbox(outbox.messages, names: names).show(empty: "no queued messages")
        } where: { event in
            event.recipient != nil
        }
    }
}

extension Render {
    /// A row for each recipient that has not received the message.
    static func outbox(_ messages: [ControlAPI.OutboxMessage], names: [PeerID: String]) -> Table {
        Table(
            [
                .init(title: "TO", isFlexible: true), .init(title: "STATUS"), .init(title: "BYTES"), .init(title: "QUEUED"),
                .init(title: "EXPIRES"), .init(title: "ID"),
            ],
            rows: messages.flatMap { message in
                message.recipients.filter { $0.status == .queued || $0.status == .sent }.map { recipient in
                    let name = names[recipient.peerID] ?? Words.short(recipient.peerID)
                    return [
                        name + (message.group.map { " in \($0.name)" } ?? ""), recipient.status.rawValue,
                        Words.size(UInt64(clamping: message.size)), Words.time(message.sentAt), Words.time(message.expiresAt),
                        Words.short(message.messageID),
                    ]
                }
            })
    }
}
