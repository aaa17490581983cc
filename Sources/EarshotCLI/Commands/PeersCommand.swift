import ArgumentParser
import EarshotClient

struct PeersCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "peers", abstract: "List known peers and peers on the network.")

    @Flag(name: .long, help: "Keep running and print changes.")
    var watch = false
    @OptionGroup var options: GlobalOptions

    mutating func run() async throws {
        let (options, watch) = (self.options, self.watch)
        try await options.withClient { client in
            // Subscribes before listing, so that no event is missed in between.
            let events = watch ? try await client.watch() : nil
            if !(watch && options.json) {
                let peers = try await client.peers()
                if options.json {
                    try Standard.write(json: peers.json)
                } else {
                    try Render.peers(peers.value.peers).show(empty: "no peers yet")
                    let byID = Dictionary(peers.value.peers.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
                    for peer in peers.value.peers {
                        if let words = Render.trouble(peer) { Standard.note(words) }
                        if let words = NameWarning.line(peer, namesake: peer.nameConflict.flatMap { byID[$0] }) { Standard.note(words) }
                    }
                }
            }
            try await events?.show(json: options.json) { $0.peer != nil }
        }
    }
}
