import ArgumentParser
import EarshotClient

struct StreamListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "List open streams and recently closed ones.")

    @Flag(name: .long, help: "Keep running and print changes.")
    var watch = false
    @OptionGroup var options: GlobalOptions

    mutating func run() async throws {
        try await self.options.list(watch: self.watch) { client in
            try await client.streams()
        } show: { list, _ in
            try Render.streams(list.streams).show(empty: "no streams")
        } where: { event in
            event.stream != nil
        }
    }
}
