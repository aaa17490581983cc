import ArgumentParser
import EarshotClient
import EarshotSafety
import Glibc

struct StreamAcceptCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "accept", abstract: "Accept a stream, and write it to standard output.",
        discussion: "Without a name, accepts the next stream of any name. Fails if the stream breaks off before its end.")

    @Argument(help: ArgumentHelp("The stream's name, as the sender gave it.", valueName: "name"))
    var name: String?
    @Option(name: .long, help: ArgumentHelp("Only a stream from this peer.", valueName: "peer"), completion: .provenPeer)
    var from: String?
    @Option(
        name: .long,
        help: ArgumentHelp(
            "Maximum time to wait for the stream, in seconds or with a unit, such as 30, 30s or 2min; default: no limit.",
            valueName: "time"))
    var timeout: Seconds?
    @OptionGroup var options: GlobalOptions

    mutating func validate() throws {
        guard self.name != "" else { throw ValidationError("the stream's name is empty") }
        guard self.from != "" else { throw ValidationError("the peer's name is empty") }
        if self.options.json { throw ValidationError("standard output is the stream itself; leave out --json") }
    }

    mutating func run() async throws {
        let (name, from) = (self.name, self.from)
        let timeout = self.timeout?.duration
        StandardPipe.enlarge(STDOUT_FILENO)
        try await self.options.withClient { client in
            do {
                let next = try await client.nextStream(name: name, from: from, timeout: timeout, into: STDOUT_FILENO)
                // Without a stream, the daemon has written all of it.
                guard let stream = next else { return }
                do throws(ControlError) {
                    try await stream.move(to: STDOUT_FILENO)
                } catch {
                    if case .output(_, let code) = error {
                        // Aborts while the daemon still holds the stream, so that the sender does not take it for complete.
                        if let id = stream.id { try? await client.abortStream(id) }
                        try Standard.check(code)
                    }
                    throw await Self.reason(stream, client) ?? error
                }
            } catch ControlError.output(_, let code) {
                try Standard.check(code)
            } catch let error as ControlError {
                throw CommandFailure(error, peer: from)
            }
        }
    }

    /// The reason why a stream broke off, from the daemon.
    private static func reason(_ stream: ControlStream, _ client: ControlClient) async -> (any Error)? {
        guard let id = stream.id else { return nil }
        do throws(ControlError) {
            guard let failure = try await client.stream(id).error else { return nil }
            return CommandFailure(code: failure.code, message: failure.message)
        } catch {
            return error
        }
    }
}
