import ArgumentParser

struct FileCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "file", abstract: "Send files, and deal with those that come.",
        subcommands: [
            FileSendCommand.self, FileListCommand.self, FileGetCommand.self, FileAcceptCommand.self, FileRefuseCommand.self,
            FileCancelCommand.self, FileDeleteCommand.self,
        ])

    mutating func run() async throws {
        throw CommandFailure(commandMissingOf: Self.self)
    }
}
