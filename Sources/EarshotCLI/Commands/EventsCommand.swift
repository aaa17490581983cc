import ArgumentParser
import EarshotClient

struct EventsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "events", abstract: "Print events as they happen.")

    @Option(
        name: .long,
        help: ArgumentHelp(
            "Start after the event with this sequence number (seq); events that are gone are reported as a gap.", valueName: "n"))
    var since: UInt64?
    @OptionGroup var options: GlobalOptions

    mutating func run() async throws {
        let (options, since) = (self.options, self.since)
        try await options.withClient { client in
            let events = try await client.watch(since: since)
            let peers = options.json ? [] : try await client.peers().peers
            let names = Dictionary(peers.map { ($0.id, $0.name) }, uniquingKeysWith: { $1 })
            try await events.show(json: options.json, names: names) { _ in true }
        }
    }
}
