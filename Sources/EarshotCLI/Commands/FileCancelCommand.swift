import ArgumentParser
import EarshotControl
import EarshotSafety

struct FileCancelCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "cancel", abstract: "Stop a file that is on its way, in either direction.")

    @Argument(
        help: ArgumentHelp("The file's id, at least 4 characters of it, or its name.", valueName: "id|name"), completion: .runningFile)
    var file: String
    @OptionGroup var options: GlobalOptions

    mutating func run() async throws {
        let (options, file) = (self.options, self.file)
        try await options.withClient { client in
            let resources = try await client.resources().value.resources
            let running = resources.filter { !$0.isOver }
            // What is done must not be found here: for the daemon, the same call deletes it.
            guard let resource = try running.named(file) else {
                if let over = resources.last(where: { $0.id == file.lowercased() || $0.name == file }) {
                    throw CommandFailure(
                        .data, "\(over.name.escapedForDisplay) is not on its way any more: it is \(over.state.rawValue.escapedForDisplay)")
                }
                throw CommandFailure(
                    .data, "there is no file \(file.escapedForDisplay)", hint: "see which ones there are: earshot file list")
            }
            try await client.removeResource(resource.id)
            if options.json { try Standard.write(json: try await client.resource(resource.id).json) }
            Standard.note("cancelled \(resource.name.escapedForDisplay)")
        }
    }
}
