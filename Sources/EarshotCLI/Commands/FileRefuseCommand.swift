import ArgumentParser
import EarshotClient

struct FileRefuseCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "refuse", abstract: "Refuse a file offered by a peer.")

    @Argument(
        help: ArgumentHelp("The file's id (first 4 characters suffice) or its name.", valueName: "id|name"), completion: .offeredFile)
    var file: String
    @OptionGroup var options: GlobalOptions

    mutating func run() async throws {
        try await self.options.answerOffer(self.file, .refuse, done: "refused")
    }
}
