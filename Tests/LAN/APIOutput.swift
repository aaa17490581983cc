import APIDocument
import Testing

/// Commands print the API's JSON with `--json`: each document is validated against its schema in the API's document.
enum APIOutput {
    /// The schema of a command's output; `nil` for a command without JSON.
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

    /// Records an issue for each fault in a command's output.
    static func check(_ output: String, of arguments: [String]) throws {
        guard let schema = Self.schema(arguments) else { return }
        for line in output.split(separator: "\n") {
            let faults = APIDocument.shared.faults(line.utf8, as: schema)
            #expect(faults == [], "earshot \(arguments.joined(separator: " "))")
        }
    }
}
