import ArgumentParser
import EarshotClient

struct InvitationsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "invitations", abstract: "List pending invitations, incoming and outgoing.")

    @Flag(name: .long, help: "Keep running and print new and answered invitations.")
    var watch = false
    @Flag(name: .long, help: "Also list invitations that were answered, were withdrawn or have expired.")
    var all = false
    @OptionGroup var options: GlobalOptions

    mutating func run() async throws {
        let all = self.all
        try await self.options.list(watch: self.watch) { client in
            try await client.invitations(all: all)
        } show: { list, _ in
            try Render.invitations(list.invitations).show(empty: all ? "no invitations" : "no invitations are waiting")
        } where: { event in
            event.invitation != nil
        }
    }
}
