import ArgumentParser
import EarshotClient
import EarshotSafety

struct StreamCancelCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cancel", abstract: "Cancel a stream that is open or waits to be accepted, in either direction.")

    /// The fewest characters of an id that name a stream: the sender has chosen the id.
    static let idPrefixMinimum = 8

    @Argument(help: ArgumentHelp("The stream's id (first 8 characters suffice).", valueName: "id"))
    var stream: String
    @OptionGroup var options: GlobalOptions

    mutating func run() async throws {
        let (options, text) = (self.options, self.stream)
        try await options.withClient { client in
            let stream = try Self.find(text, in: try await client.streams().streams)
            guard stream.state != .closed else {
                throw CommandFailure(.data, "the stream \(stream.name.escapedForDisplay) is closed already")
            }
            try await client.abortStream(stream.id)
            if options.json { try Standard.write(json: try await client.stream(stream.id).json) }
            Standard.note("cancelled the stream \(stream.name.escapedForDisplay)")
        }
    }

    /// The stream that the text names.
    static func find(_ text: String, in streams: [ControlAPI.Stream]) throws(CommandFailure) -> ControlAPI.Stream {
        let id = text.lowercased()
        let matches = streams.filter { $0.id.isNamed(id, atLeast: Self.idPrefixMinimum) }
        guard let match = matches.first(where: { $0.id.description == id }) ?? matches.first else {
            throw CommandFailure(.data, "no such stream: \(text.escapedForDisplay)", hint: "list the streams: earshot stream list")
        }
        guard match.id.description == id || matches.count == 1 else {
            throw CommandFailure(
                .data, "\(text.escapedForDisplay) matches several streams",
                hint: (["give more of the id:"] + matches.map { "  \($0.id)  \($0.name.escapedForDisplay)" }).joined(separator: "\n"))
        }
        return match
    }
}
