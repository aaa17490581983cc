import Earshot
import EarshotDiscovery
import Foundation
import Logging
import NIOCore

@main
struct Share {
    static func main() async throws {
        guard CommandLine.arguments.count == 4 else { return print("usage: peer-share NAME FILE DIRECTORY") }
        let (file, directory) = (CommandLine.arguments[2], CommandLine.arguments[3])
        let configuration = Node.Configuration.ephemeral(
            displayName: try DisplayName(CommandLine.arguments[1]), serviceType: try ServiceType("share"))
        let logger = Logger(label: "share", factory: { _ in SwiftLogNoOpLogHandler() })
        let node = try await Node(configuration: configuration, discovery: AutomaticDiscovery(logger: logger), logger: logger)
        try await node.start()
        await withDiscardingTaskGroup { group in
            group.addTask { await node.run() }
            group.addTask { await Self.listen(to: node) }
            for await event in node.events.subscribe(since: 0) {
                group.addTask { await Self.handle(event, at: node, file, directory) }
            }
        }
    }

    static func handle(_ event: NodeEvent, at node: Node, _ file: String, _ directory: String) async {
        do throws(EarshotError) {
            switch event.kind {
            case .peerFound(let peer) where node.id < peer.id: try await node.invite(peer.id)
            case .invitationReceived(let invitation): try await node.respond(to: invitation.id, .accept)
            case .sessionChanged(let session, ended: false):
                for member in session.members where member.state == .connected {
                    try await node.sendResource(to: [member.peerID], path: file)
                    try await Self.greet(member, from: node)
                }
            case .resourceFinished(let resource) where resource.direction == .incoming && resource.state == .completed:
                print("received \(try await node.publishContent(resource.id, into: directory))")
            default: break
            }
        } catch {
            print(error.message)
        }
    }

    static func greet(_ member: Session.Member, from node: Node) async throws(EarshotError) {
        let (body, words) = AsyncStream<ByteBuffer>.makeStream()
        for word in ["hello, ", member.name] { words.yield(ByteBuffer(string: word)) }
        words.finish()
        try await node.openStream(to: member.peerID, name: "greeting", body: body)
    }

    static func listen(to node: Node) async {
        while let content = try? await node.acceptNextStream(name: "greeting") {
            do throws(EarshotError) {
                while let bytes = try await content.next() { print("\(bytes.readableBytes) bytes from a peer") }
                try await content.finish()
            } catch {
                print(error.message)
            }
        }
    }
}
