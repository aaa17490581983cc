import ArgumentParser
import EarshotClient

struct GroupListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "List the groups that this machine is in.")

    @Flag(name: .long, help: "Keep running and print changes.")
    var watch = false
    @OptionGroup var options: GlobalOptions

    mutating func run() async throws {
        try await self.options.list(watch: self.watch) { client in
            try await client.groups()
        } show: { list, _ in
            try Render.groups(list.groups).show(empty: "no groups; create one: earshot group create NAME PEER...")
        } where: { event in
            event.group != nil || event.groupID != nil
        }
    }
}
