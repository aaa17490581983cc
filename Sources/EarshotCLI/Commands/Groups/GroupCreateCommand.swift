import ArgumentParser
import EarshotClient
import EarshotSafety

struct GroupCreateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "create", abstract: "Create a group, print its id, and invite peers to it.",
        discussion: "Does not wait for answers: to see who has joined, run earshot group show.")

    @Argument(help: ArgumentHelp("The group's name, 1 to 63 bytes.", valueName: "name"))
    var name: String
    @Argument(help: ArgumentHelp("Peers to invite.", valueName: "peer"), completion: .groupInvitablePeer)
    var peers: [String] = []
    @Option(name: .long, help: ArgumentHelp("Also invite the other members of this group.", valueName: "group"), completion: .group)
    var from: String?
    @Flag(name: .long, help: "Only this machine can invite others.")
    var closed = false
    @Flag(name: .long, help: "Members may connect without TLS, if their settings allow it.")
    var unprotected = false
    @OptionGroup var options: GlobalOptions

    mutating func run() async throws {
        let (options, name, peers, from) = (self.options, self.name, self.peers, self.from)
        let (closed, unprotected) = (self.closed, self.unprotected)
        try await options.withClient { client in
            var invited: [any PeerReference] = peers
            if let from {
                let own = try await client.status().peerID
                // The other group is looked up first: if it does not exist, no group is created.
                invited += try await client.group(from).members.map(\.peerID).filter { $0 != own }
            }
            let group = try await client.createGroup(
                ControlAPI.GroupRequest(name: name, closed: closed ? true : nil, unprotected: unprotected ? true : nil))
            if options.json { try Standard.write(json: group.json) } else { try Standard.write(group.id.description + "\n") }
            // Each peer is invited separately, so that one failure does not affect the others.
            var outcomes = GroupInvitationOutcomes(group: group.value.name)
            for peer in invited {
                do throws(ControlError) {
                    try await client.invite([peer], to: group.id)
                } catch {
                    outcomes.add(CommandFailure(error, peer: peer.description))
                }
            }
            try outcomes.end()
        }
    }
}
