import ArgumentParser
import EarshotClient
import EarshotSafety

struct PeerNameCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "name", abstract: "Give a peer a name on this machine, which goes before the peer's own name.")

    @Argument(help: .peer, completion: .peer(notYet: nil))
    var peer: String
    @Argument(help: "The name: 1 to 63 bytes.", completion: .custom { _, _, _ in [] })
    var name: String?
    @Flag(name: .long, help: "Remove the name, so that the peer has its own again.")
    var remove = false
    @OptionGroup var options: GlobalOptions

    mutating func validate() throws {
        if self.remove, self.name != nil { throw ValidationError("give either a name or --remove, not both") }
        if !self.remove, self.name == nil { throw ValidationError("a name is missing, or --remove") }
    }

    mutating func run() async throws {
        let (options, peer, name) = (self.options, self.peer, self.name)
        let named = try await options.withClient { client in try await client.setAlias(name, of: peer) }
        if options.json { try Standard.write(json: named.json) }
        let (shown, own) = (named.value.name.escapedForDisplay, named.value.displayName?.escapedForDisplay)
        Standard.note(own.map { "\($0) (\(Words.short(named.value.id))) is called \(shown) here" } ?? "\(shown) has its own name")
    }
}
