import ArgumentParser

struct FileCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "file", abstract: "Send and receive files and directories.",
        subcommands: [
            FileSendCommand.self, FileListCommand.self, FileGetCommand.self, FileAcceptCommand.self, FileRefuseCommand.self,
            FileCancelCommand.self, FileDeleteCommand.self,
        ])

    mutating func run() async throws {
        throw CommandFailure(commandMissingOf: Self.self)
    }
}
