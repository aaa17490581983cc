import ArgumentParser
import EarshotClient

struct GroupListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "List the groups that this machine is in.")

    @OptionGroup var options: GlobalOptions

    mutating func run() async throws {
        let options = self.options
        let groups = try await options.withClient { client in try await client.groups() }
        if options.json { return try Standard.write(json: groups.json) }
        try Render.groups(groups.value.groups).show(empty: "no groups; create one: earshot group create NAME PEER...")
    }
}
