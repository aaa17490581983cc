import ArgumentParser
import EarshotClient
import EarshotSafety

struct GroupRemoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Remove a member from a group that this machine created.",
        discussion: """
            Members that joined through the removed member stay, unless --invited is given. Only this machine can invite the removed member \
            again.
            """)

    @Argument(help: .group, completion: .group)
    var group: String
    @Argument(help: .peer, completion: .groupMember)
    var peer: String
    @Flag(name: .long, help: "Also remove the members that joined through this member, directly or indirectly.")
    var invited = false
    @OptionGroup var options: GlobalOptions

    mutating func run() async throws {
        let (options, group, peer, invited) = (self.options, self.group, self.peer, self.invited)
        try await options.withClient { client in
            let left = try await client.removeMember(peer, from: group, withInvited: invited)
            if options.json { try Standard.write(json: left.json) }
            Standard.note("removed \(peer.escapedForDisplay) from \(left.value.name.escapedForDisplay)")
        }
    }
}

struct GroupLeaveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "leave", abstract: "Leave a group.")

    @Argument(help: .group, completion: .group)
    var group: String
    @OptionGroup var options: GlobalOptions

    mutating func run() async throws {
        try await self.options.leaveGroup(self.group, done: "left")
    }
}

struct GroupDissolveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "dissolve", abstract: "Permanently end a group that this machine created, for all its members.")

    @Argument(help: .group, completion: .group)
    var group: String
    @OptionGroup var options: GlobalOptions

    mutating func run() async throws {
        try await self.options.leaveGroup(self.group, dissolve: true, done: "dissolved")
    }
}

struct GroupRenameCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "rename", abstract: "Rename a group that this machine created.")

    @Argument(help: .group, completion: .group)
    var group: String
    @Argument(help: ArgumentHelp("The new name, 1 to 63 bytes.", valueName: "name"))
    var name: String
    @OptionGroup var options: GlobalOptions

    mutating func run() async throws {
        let (options, group, name) = (self.options, self.group, self.name)
        try await options.withClient { client in
            let renamed = try await client.renameGroup(group, to: name)
            if options.json { try Standard.write(json: renamed.json) }
            Standard.note("the group is now called \(renamed.value.name.escapedForDisplay)")
        }
    }
}

extension GlobalOptions {
    /// Leaves or dissolves a group, and prints its last state.
    fileprivate func leaveGroup(_ name: String, dissolve: Bool = false, done: String) async throws {
        try await self.withClient { client in
            let group = try await client.group(name)
            try await client.leaveGroup(group.value.id, dissolve: dissolve)
            if self.json { try Standard.write(json: group.json) }
            Standard.note("\(done) \(group.value.name.escapedForDisplay)")
        }
    }
}
