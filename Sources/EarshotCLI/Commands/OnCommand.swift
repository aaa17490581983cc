import ArgumentParser
import EarshotClient

struct OnCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "on", abstract: "Run a command for what arrives.",
        discussion: """
            Runs COMMAND for each unread message, oldest first, with the message on its standard input, and marks the message read when \
            COMMAND exits with 0. A command that fails runs again later. SIGTERM and Ctrl-C wait for running commands.
            """)

    /// What a command handles.
    enum Subject: String, CaseIterable, ExpressibleByArgument {
        case message
    }

    /// The most commands that run at a time.
    static let jobsLimit = 64
    /// The shortest pause before a retry, in seconds.
    static let shortestRetry = 0.1

    @Argument(help: ArgumentHelp("What to wait for: message.", valueName: "event"))
    var subject: Subject
    @Option(name: .long, help: ArgumentHelp("Only what this peer sends; may be repeated.", valueName: "peer"), completion: .provenPeer)
    var from: [String] = []
    @Option(name: .long, help: ArgumentHelp("Only what is sent to this group.", valueName: "group"), completion: .group)
    var group: String?
    @Option(name: .long, help: ArgumentHelp("Only messages of this type, such as text/plain or image/*.", valueName: "mime"))
    var type: ContentType?
    @Option(name: .long, help: ArgumentHelp("Commands that may run at a time, for as many senders.", valueName: "n"))
    var jobs = 1
    @Option(
        name: .long,
        help: ArgumentHelp("Time before a failed command runs again; doubles up to an hour. Default: 1min.", valueName: "time"))
    var retry: Seconds?
    @Argument(parsing: .postTerminator, help: ArgumentHelp("The command and its arguments, after --.", valueName: "command"))
    var command: [String] = []
    @OptionGroup var options: GlobalOptions

    mutating func validate() throws {
        guard !self.from.contains("") else { throw ValidationError("the peer's name is empty") }
        guard self.group != "" else { throw ValidationError("the group's name is empty") }
        guard (1...Self.jobsLimit).contains(self.jobs) else { throw ValidationError("--jobs is a number from 1 to \(Self.jobsLimit)") }
        if let retry = self.retry, retry.value < Self.shortestRetry { throw ValidationError("--retry is 100ms or more") }
        guard !self.command.isEmpty else { throw ValidationError("no command given; write it after --: earshot on message -- COMMAND") }
    }

    mutating func run() async throws {
        let (from, group, type, options) = (self.from, self.group, self.type, self.options)
        let (jobs, retry) = (self.jobs, self.retry?.duration ?? .seconds(60))
        let command = try HandlerCommand(self.command)
        try await options.withClient { client in
            var senders: [PeerID] = []
            for name in from { if let peer = try await client.peerID(name), !senders.contains(peer) { senders.append(peer) } }
            let source = MessageHandling(
                client: client, command: command, senders: senders, group: try await client.groupID(group), type: type,
                asJSON: options.json)
            if Terminal.isError { Standard.note("waiting for messages; press Ctrl-C to stop") }
            try await HandlerLoop(source: source, jobs: jobs, retry: retry).run()
        }
    }
}
