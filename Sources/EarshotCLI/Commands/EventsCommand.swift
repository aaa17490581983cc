import ArgumentParser
import EarshotClient

struct EventsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "events", abstract: "Print everything that happens, as it happens.")

    @Option(name: .long, help: ArgumentHelp("Begin after this event, as far as the daemon still has it.", valueName: "n"))
    var since: UInt64?
    @OptionGroup var options: GlobalOptions

    mutating func run() async throws {
        let (options, since) = (self.options, self.since)
        try await options.withClient { client in
            try await client.watch(since: since).show(json: options.json) { _ in true }
        }
    }
}
