import ArgumentParser
import EarshotClient
import EarshotSafety

struct TrustCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "trust", abstract: "Trust a peer: its invitations are accepted by themselves.")

    @Argument(help: .peer, completion: .peer(notYet: .trusted))
    var peer: String
    @Option(
        name: .customLong("for"),
        help: ArgumentHelp("Trust it for so long, such as 30min, 1h or 7d; for good unless given.", valueName: "time"))
    var time: Seconds?
    @OptionGroup var options: GlobalOptions

    mutating func validate() throws {
        if let time = self.time, time.value <= 0 { throw ValidationError("--for is more than 0") }
    }

    mutating func run() async throws {
        let (options, name, time) = (self.options, self.peer, self.time?.value)
        let peer = try await options.withClient { client in
            await NameWarning(client: client).tell(of: name)
            return try await client.setTrust(.trusted, of: name, forSeconds: time)
        }
        if options.json { try Standard.write(json: peer.json) }
        Standard.note(
            "\(peer.value.name.escapedForDisplay) is trusted" + (peer.value.trustExpiresAt.map { " until \(Words.time($0))" } ?? ""))
    }
}
