import ArgumentParser
import EarshotClient
import EarshotSafety

struct StreamCancelCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cancel", abstract: "Cancel a stream that is open or waits to be accepted, in either direction.")

    @Argument(help: ArgumentHelp("The stream's id (first 8 characters suffice).", valueName: "id"))
    var stream: String
    @OptionGroup var options: GlobalOptions

    mutating func run() async throws {
        let (options, text) = (self.options, self.stream)
        try await options.withClient { client in
            let streams = try await client.streams().streams
            let stream = try streams.named(text, by: \.id, "stream", list: "earshot stream list") {
                "\($0.id)  \($0.name.escapedForDisplay)"
            }
            guard stream.state != .closed else {
                throw CommandFailure(.data, "the stream \(stream.name.escapedForDisplay) is closed already")
            }
            try await client.abortStream(stream.id)
            if options.json { try Standard.write(json: try await client.stream(stream.id).json) }
            Standard.note("cancelled the stream \(stream.name.escapedForDisplay)")
        }
    }
}
