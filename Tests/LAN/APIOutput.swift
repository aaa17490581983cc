import APIDocument
import Testing

/// What commands print with `--json` is the API's own: each document is held to the schema that the API's document has for it.
enum APIOutput {
    /// The schema of what a command prints; `nil` for one that prints none.
    private static func schema(_ arguments: [String]) -> String? {
        let words = arguments.filter { !$0.hasPrefix("-") }
        let isWatching = arguments.contains("--watch")
        switch words.first {
        case "status": return "Status"
        case "peers": return isWatching ? "Event" : "PeerList"
        case "trust", "distrust", "block", "unblock": return "Peer"
        case "verify": return "Verification"
        case "policy": return "PeerPolicy"
        case "invitations": return isWatching ? "Event" : "InvitationList"
        case "invite", "accept", "reject": return "Invitation"
        case "sessions": return "SessionList"
        case "send": return "MessageReceipt"
        case "receive": return "Message"
        case "events": return "Event"
        case "file" where words.dropFirst().first == "list": return isWatching ? "Event" : "ResourceList"
        case "stream" where words.dropFirst().first == "list": return "StreamList"
        default: return nil
        }
    }

    /// Records an issue for each fault of a command's output.
    static func check(_ output: String, of arguments: [String]) throws {
        guard let schema = Self.schema(arguments) else { return }
        for line in output.split(separator: "\n") {
            let faults = APIDocument.shared.faults(line.utf8, as: schema)
            #expect(faults == [], "earshot \(arguments.joined(separator: " "))")
        }
    }
}
