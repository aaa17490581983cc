import ArgumentParser
import EarshotClient

struct FileAcceptCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "accept", abstract: "Accept a file offered by a peer.")

    @Argument(
        help: ArgumentHelp("The file's id (first 4 characters suffice) or its name.", valueName: "id|name"), completion: .offeredFile)
    var file: String
    @OptionGroup var options: GlobalOptions

    mutating func run() async throws {
        try await self.options.answerOffer(self.file, .accept, done: "accepted")
    }
}
