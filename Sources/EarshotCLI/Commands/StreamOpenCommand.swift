import ArgumentParser
import EarshotClient
import EarshotSafety
import Glibc

struct StreamOpenCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "open", abstract: "Send standard input as a stream, and wait until the receiver has read all of it.",
        discussion: "The peer must accept the stream within 30 seconds: earshot stream accept NAME.")

    @Argument(help: .peer, completion: .reachablePeer)
    var peer: String
    @Argument(help: ArgumentHelp("The stream's name, 1 to 255 bytes.", valueName: "name"))
    var name: String
    @OptionGroup var options: GlobalOptions

    /// The time before a message says that the stream is not accepted yet.
    private static let patience: Duration = .seconds(1)

    mutating func validate() throws {
        guard !self.name.isEmpty else { throw ValidationError("the stream's name is empty") }
    }

    mutating func run() async throws {
        let (options, peer, name) = (self.options, self.peer, self.name)
        StandardPipe.enlarge(STDIN_FILENO)
        try await options.withClient { client in
            await ProtectionWarning(client: client).tell(of: [peer])
            let answer = try await withThrowingTaskGroup(of: ControlReply<ControlAPI.Stream>?.self) { group in
                group.addTask {
                    do throws(ControlError) {
                        return try await client.openStream(to: peer, name: name, from: STDIN_FILENO)
                    } catch {
                        throw CommandFailure(error, peer: peer)
                    }
                }
                group.addTask {
                    try await Task.sleep(for: Self.patience)
                    try await Self.sayWhoIsAwaited(name, client)
                    return nil
                }
                defer { group.cancelAll() }
                while let result = try await group.next() {
                    if let result { return result }
                }
                throw CancellationError()
            }
            if options.json { try Standard.write(json: answer.json) }
        }
    }

    private static func sayWhoIsAwaited(_ name: String, _ client: ControlClient) async throws {
        let streams = (try? await client.streams().streams) ?? []
        // The stream's id is not known yet: the newest stream of the name is this one.
        let stream = streams.last { $0.direction == .outgoing && $0.state == .opening && $0.name.hasBytes(of: name) }
        guard let stream else { return }
        try Task.checkCancellation()
        Standard.note("waiting for \(stream.peerName.escapedForDisplay) to accept \(name.escapedForDisplay)")
    }
}
