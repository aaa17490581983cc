import Earshot
import EarshotDiscovery
import Foundation
import Logging

struct Line: TypedMessage {
    static let contentType = "application/vnd.earshot.example.chat+json"
    let text: String
}

@main
struct Chat {
    static func main() async throws {
        guard CommandLine.arguments.count == 2 else { return print("usage: peer-chat NAME") }
        let configuration = Node.Configuration.ephemeral(
            displayName: try DisplayName(CommandLine.arguments[1]), serviceType: try ServiceType("chat"))
        let logger = Logger(label: "chat", factory: { _ in SwiftLogNoOpLogHandler() })
        let node = try await Node(configuration: configuration, discovery: AutomaticDiscovery(logger: logger), logger: logger)
        try await node.start()
        let running = Task { await node.run() }
        let meeting = Task { for await event in node.events.subscribe(since: 0) { await Self.meet(event, at: node) } }
        let listening = Task {
            for try await message in node.messages(of: Line.self) {
                guard let line = message.content.value(as: Line.self) else { continue }
                Self.show("\(message.message.senderName): \(line.text)")
            }
        }
        for await text in Self.typed() { _ = try? await node.send(Line(text: text), to: .all) }
        for task in [meeting, running] { task.cancel() }
        listening.cancel()
        await running.value
    }

    /// When two peers discover each other, the peer with the lower id invites, and the other accepts.
    static func meet(_ event: NodeEvent, at node: Node) async {
        switch event.kind {
        case .peerFound(let peer) where node.id < peer.id: _ = try? await node.invite(peer.id)
        case .invitationReceived(let invitation): _ = try? await node.respond(to: invitation.id, .accept)
        case .sessionChanged(let session, ended: false):
            for member in session.members where member.state == .connected { Self.show("* \(member.name) is here") }
        default: break
        }
    }

    /// The lines of standard input, read by a thread of their own, because `readLine` blocks.
    static func typed() -> AsyncStream<String> {
        AsyncStream { lines in
            Thread.detachNewThread {
                while let line = readLine() { lines.yield(line) }
                lines.finish()
            }
        }
    }

    /// Prints a line immediately. Text from another machine may contain terminal control characters, which are replaced.
    static func show(_ line: String) {
        let safe = line.unicodeScalars.map { $0.properties.generalCategory == .control ? "?" : $0 }
        FileHandle.standardOutput.write(Data("\(String(String.UnicodeScalarView(safe)))\n".utf8))
    }
}
