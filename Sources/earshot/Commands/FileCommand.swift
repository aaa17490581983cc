import ArgumentParser

struct FileCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "file", abstract: "Send, list, fetch and cancel files.",
        subcommands: [FileSendCommand.self, FileListCommand.self, FileGetCommand.self, FileCancelCommand.self])

    mutating func run() async throws {
        throw CommandFailure(.usage, "a command of file is missing", hint: EarshotCommand.helpMessage(for: Self.self))
    }
}
