import ArgumentParser
import EarshotClient
import EarshotSafety

struct PingCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ping", abstract: "Measure the round-trip time to a peer, over the open connection or a new one.",
        discussion:
            "No session is needed. If the peer cannot be reached, prints the step that failed; earshot doctor PEER prints all steps.")

    /// The time between two requests.
    static let interval: Duration = .seconds(1)
    /// The most requests of one command.
    static let countLimit = 1_000_000

    @Argument(help: .peer, completion: .peer(notYet: .blocked))
    var peer: String
    @Option(name: .long, help: ArgumentHelp("Number of requests to send, one per second.", valueName: "n"))
    var count = 3
    @OptionGroup var options: GlobalOptions

    mutating func validate() throws {
        guard (1...Self.countLimit).contains(self.count) else { throw ValidationError("--count is 1 to \(Self.countLimit)") }
    }

    mutating func run() async throws {
        let (options, peer, count) = (self.options, self.peer, self.count)
        try await options.withClient { client in
            for number in 1...count {
                if number > 1 { try await Task.sleep(for: Self.interval) }
                let reply = try await client.ping(peer)
                if options.json {
                    try Standard.write(json: reply.json)
                } else if let line = Self.line(reply.value) {
                    try Standard.write(line + "\n")
                }
                if let failed = reply.value.failure { throw Self.failure(failed, reply.value) }
            }
        }
    }

    /// The line for an answer; `nil` without one.
    static func line(_ ping: ControlAPI.PeerPing) -> String? {
        guard let time = ping.roundTripMilliseconds else { return nil }
        let over = ping.connection?.known == .new ? "a new connection" : "the open connection"
        return "\(ping.peerName.escapedForDisplay) answered in \(Words.milliseconds(time)) over \(over)"
    }

    /// The failure of a step.
    static func failure(_ step: ControlAPI.PeerPing.Step, _ ping: ControlAPI.PeerPing) -> CommandFailure {
        let name = ping.peerName.escapedForDisplay
        let told = CommandFailure(code: step.code, message: step.message)
        return CommandFailure(
            told.status, "\(name) does not answer (\(step.step.rawValue.escapedForDisplay)): \(told.message ?? "")",
            hint: Check.remedy(step, name) ?? told.hint)
    }
}
