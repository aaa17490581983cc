import ArgumentParser
import EarshotClient

struct StreamListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "List open streams and recently closed ones.")

    @OptionGroup var options: GlobalOptions

    mutating func run() async throws {
        let options = self.options
        try await options.withClient { client in
            let streams = try await client.streams()
            if options.json {
                try Standard.write(json: streams.json)
            } else {
                try Render.streams(streams.value.streams).show(empty: "no streams")
            }
        }
    }
}
