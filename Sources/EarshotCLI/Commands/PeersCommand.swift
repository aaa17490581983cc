import ArgumentParser
import EarshotClient

struct PeersCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "peers", abstract: "List known peers and peers on the network.")

    @Flag(name: .long, help: "Keep running and print changes.")
    var watch = false
    @OptionGroup var options: GlobalOptions

    mutating func run() async throws {
        try await self.options.list(watch: self.watch) { client in
            try await client.peers()
        } show: { list, _ in
            try Render.peers(list.peers).show(empty: "no peers yet")
            let byID = Dictionary(list.peers.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
            for peer in list.peers {
                if let words = Render.trouble(peer) { Standard.note(words) }
                if let words = NameWarning.line(peer, namesake: peer.nameConflict.flatMap { byID[$0] }) { Standard.note(words) }
            }
        } where: { event in
            event.peer != nil
        }
    }
}
