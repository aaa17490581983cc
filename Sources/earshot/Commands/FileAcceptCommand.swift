import ArgumentParser
import EarshotControl
import EarshotSafety

struct FileAcceptCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "accept", abstract: "Accept a file that a peer offers, where offers wait for an answer.")

    @Argument(
        help: ArgumentHelp("The file's id, at least 4 characters of it, or its name.", valueName: "id|name"), completion: .offeredFile)
    var file: String
    @OptionGroup var options: GlobalOptions

    mutating func run() async throws {
        let (options, file) = (self.options, self.file)
        try await options.withClient { client in
            let resource = try await client.resources().value.resources.offer(file)
            let answer = try await client.respond(toOffer: resource.id, .accept)
            if options.json { try Standard.write(json: answer.json) }
            Standard.note("accepted \(resource.name.escapedForDisplay) from \(resource.peerName.escapedForDisplay)")
        }
    }
}
