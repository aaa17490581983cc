import ArgumentParser

struct GroupCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "group", abstract: "Manage groups: conversations of several peers.",
        subcommands: [
            GroupCreateCommand.self, GroupListCommand.self, GroupShowCommand.self, GroupInviteCommand.self, GroupRemoveCommand.self,
            GroupLeaveCommand.self, GroupRenameCommand.self, GroupDissolveCommand.self,
        ])

    mutating func run() async throws {
        throw CommandFailure(commandMissingOf: Self.self)
    }
}
