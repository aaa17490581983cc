import ArgumentParser
import EarshotClient

struct InvitationsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "invitations", abstract: "List pending invitations, incoming and outgoing.")

    @Flag(name: .long, help: "Keep running and print new and answered invitations.")
    var watch = false
    @OptionGroup var options: GlobalOptions

    mutating func run() async throws {
        try await self.options.list(watch: self.watch) { client in
            try await client.invitations()
        } show: { list, _ in
            try Render.invitations(list.invitations).show(empty: "no invitations are waiting")
        } where: { event in
            event.invitation != nil
        }
    }
}
