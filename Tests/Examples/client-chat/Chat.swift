import EarshotClient
import Foundation

struct Line: TypedMessage {
    static let contentType = "application/vnd.earshot.example.chat+json"
    let text: String
}

@main
struct Chat {
    static func main() async throws {
        guard CommandLine.arguments.count == 2 else { return print("usage: client-chat PEER") }
        let peer = CommandLine.arguments[1]
        try await ControlClient.with { client in
            let listening = Task {
                for try await message in client.messages(of: Line.self, from: peer) {
                    guard let line = message.content.value(as: Line.self) else { continue }
                    Self.show("\(message.sender.name): \(line.text)")
                }
            }
            for await text in Self.typed() {
                let receipt = try await client.send(Line(text: text), to: peer)
                for recipient in receipt.recipients where recipient.status != .delivered { Self.show("(\(recipient.status.rawValue))") }
            }
            listening.cancel()
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
