import ArgumentParser
import EarshotClient

struct SessionsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "sessions", abstract: "List the sessions with peers.")

    @OptionGroup var options: GlobalOptions

    mutating func run() async throws {
        let options = self.options
        let sessions = try await options.withClient { client in try await client.sessions() }
        if options.json { return try Standard.write(json: sessions.json) }
        try Render.sessions(sessions.value.sessions).show(empty: "no sessions; ask for one: earshot invite PEER")
    }
}
