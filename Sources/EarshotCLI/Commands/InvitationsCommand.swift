import ArgumentParser
import EarshotClient

struct InvitationsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "invitations", abstract: "List pending invitations, incoming and outgoing.")

    @Flag(name: .long, help: "Keep running and print new and answered invitations.")
    var watch = false
    @OptionGroup var options: GlobalOptions

    mutating func run() async throws {
        let (options, watch) = (self.options, self.watch)
        try await options.withClient { client in
            let events = watch ? try await client.watch() : nil
            if !(watch && options.json) {
                let invitations = try await client.invitations()
                if options.json {
                    try Standard.write(json: invitations.json)
                } else {
                    try Render.invitations(invitations.value.invitations).show(empty: "no invitations are waiting")
                }
            }
            try await events?.show(json: options.json) { $0.invitation != nil }
        }
    }
}
