import ArgumentParser
import EarshotControl

struct FileListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "List the files that are on their way or arrived.")

    @Flag(name: .long, help: "Go on, with a line for everything that happens to a file.")
    var watch = false
    @OptionGroup var options: GlobalOptions

    mutating func run() async throws {
        let (options, watch) = (self.options, self.watch)
        try await options.withClient { client in
            let events = watch ? try await client.events() : nil
            if !(watch && options.json) {
                let resources = try await client.resources()
                if options.json {
                    try Standard.write(json: resources.json)
                } else {
                    try Render.resources(resources.value.resources).show(empty: "no files")
                }
            }
            try await events?.show(json: options.json) { $0.resource != nil }
        }
    }
}
