import ArgumentParser
import EarshotClient
import EarshotSafety

struct GroupRemoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Take a member out of a group of this machine's.",
        discussion: "Those that came in through it stay, unless --invited. Only this machine lets it in again.")

    @Argument(help: .group, completion: .group)
    var group: String
    @Argument(help: .peer, completion: .groupMember)
    var peer: String
    @Flag(name: .long, help: "And all that came in through it.")
    var invited = false
    @OptionGroup var options: GlobalOptions

    mutating func run() async throws {
        let (options, group, peer, invited) = (self.options, self.group, self.peer, self.invited)
        try await options.withClient { client in
            let left = try await client.removeMember(peer, from: group, withInvited: invited)
            if options.json { try Standard.write(json: left.json) }
            Standard.note("took \(peer.escapedForDisplay) out of \(left.value.name.escapedForDisplay)")
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
        commandName: "dissolve", abstract: "End a group of this machine's for all its members, for good.")

    @Argument(help: .group, completion: .group)
    var group: String
    @OptionGroup var options: GlobalOptions

    mutating func run() async throws {
        try await self.options.leaveGroup(self.group, dissolve: true, done: "dissolved")
    }
}

struct GroupRenameCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "rename", abstract: "Give a group of this machine's another name.")

    @Argument(help: .group, completion: .group)
    var group: String
    @Argument(help: ArgumentHelp("What it is called from now on, 1 to 63 bytes.", valueName: "name"))
    var name: String
    @OptionGroup var options: GlobalOptions

    mutating func run() async throws {
        let (options, group, name) = (self.options, self.group, self.name)
        try await options.withClient { client in
            let renamed = try await client.renameGroup(group, to: name)
            if options.json { try Standard.write(json: renamed.json) }
            Standard.note("it is called \(renamed.value.name.escapedForDisplay) now")
        }
    }
}

extension GlobalOptions {
    /// Leaves a group, or ends it for all, and says how it was last.
    fileprivate func leaveGroup(_ name: String, dissolve: Bool = false, done: String) async throws {
        try await self.withClient { client in
            let group = try await client.group(name)
            try await client.leaveGroup(group.value.id, dissolve: dissolve)
            if self.json { try Standard.write(json: group.json) }
            Standard.note("\(done) \(group.value.name.escapedForDisplay)")
        }
    }
}
