import Earshot
import EarshotDiscovery
import Logging

// A peer of its own, as the library's guide has it: made, started, asked and stopped.
struct Reading: TypedMessage {
    static let contentType = "application/vnd.example.reading+json"
    let celsius: Double
}

let configuration = Node.Configuration.ephemeral(displayName: try DisplayName("outside"), serviceType: try ServiceType("outside"))
let logger = Logger(label: "outside")
let node = try await Node(configuration: configuration, discovery: AutomaticDiscovery(logger: logger), logger: logger)
try await node.start()
let running = Task { await node.run() }
do {
    _ = try await node.send(Reading(celsius: 21), to: "nobody")
} catch {
    print("\(error.code.rawValue): \(error.message)")
}
let id: PeerID = node.id
do {
    try await node.invite(id, timeout: .seconds(1))
    _ = try await node.messages(from: id, in: GroupID.random())
} catch {
    print("\(error.code.rawValue): \(error.message)")
}
print("a peer of its own: \(id.description.count) characters, port \(await node.status().port > 0)")
running.cancel()
await running.value
