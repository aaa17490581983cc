import ArgumentParser
import EarshotClient

struct SessionsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "sessions", abstract: "List the sessions with peers.")

    @Flag(name: .long, help: "Keep running and print changes.")
    var watch = false
    @OptionGroup var options: GlobalOptions

    mutating func run() async throws {
        try await self.options.list(watch: self.watch) { client in
            try await client.sessions()
        } show: { list, _ in
            try Render.sessions(list.sessions).show(empty: "no sessions; ask for one: earshot invite PEER")
        } where: { event in
            event.session != nil
        }
    }
}
