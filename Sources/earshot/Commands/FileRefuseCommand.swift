import ArgumentParser
import EarshotControl
import EarshotSafety

struct FileRefuseCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "refuse", abstract: "Refuse a file that a peer offers.")

    @Argument(
        help: ArgumentHelp("The file's id, at least 4 characters of it, or its name.", valueName: "id|name"), completion: .offeredFile)
    var file: String
    @OptionGroup var options: GlobalOptions

    mutating func run() async throws {
        let (options, file) = (self.options, self.file)
        try await options.withClient { client in
            let resource = try await client.resources().value.resources.offer(file)
            let answer = try await client.respond(toOffer: resource.id, .refuse)
            if options.json { try Standard.write(json: answer.json) }
            Standard.note("refused \(resource.name.escapedForDisplay) from \(resource.peerName.escapedForDisplay)")
        }
    }
}
