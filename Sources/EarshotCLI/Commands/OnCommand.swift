import ArgumentParser
import EarshotClient
import EarshotSafety

struct OnCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "on", abstract: "Run a command for each message or file that arrives.",
        discussion: """
            With message, runs COMMAND once for each unread message, oldest first, with the message on its standard input, and marks the \
            message read when COMMAND exits with 0. With file, fetches each received file, and runs COMMAND with its path. A command that \
            fails runs again later. SIGTERM and Ctrl-C wait for running commands.
            """)

    /// The first argument: the kind of arrivals that a command handles.
    enum Subject: String, CaseIterable, ExpressibleByArgument {
        case message
        case file
    }

    /// The most commands that run at a time.
    static let jobsLimit = 64
    /// The shortest pause before a retry, in seconds.
    static let shortestRetry = 0.1
    /// The pause before the first retry, unless the user gives one.
    static let usualRetry: Duration = .seconds(60)

    @Argument(help: ArgumentHelp("message or file.", valueName: "what"))
    var subject: Subject
    @Option(name: .long, help: ArgumentHelp("Only what this peer sends; may be repeated.", valueName: "peer"), completion: .provenPeer)
    var from: [String] = []
    @Option(name: .long, help: ArgumentHelp("Only what is sent to this group.", valueName: "group"), completion: .group)
    var group: String?
    @Option(name: .long, help: ArgumentHelp("Only messages of this type, such as text/plain or image/*.", valueName: "mime"))
    var type: ContentType?
    @Option(
        name: [.short, .long], help: ArgumentHelp("Save files to this directory. Default: the current one.", valueName: "dir"),
        completion: .directory)
    var output: String?
    @Option(name: .long, help: ArgumentHelp("The most commands that run at a time. Default: 1.", valueName: "n"))
    var jobs: Int?
    @Option(
        name: .long,
        help: ArgumentHelp("Time before a failed command runs again; doubles up to 1h. Default: 1min.", valueName: "time"))
    var retry: Seconds?
    @Argument(parsing: .postTerminator, help: ArgumentHelp("The command and its arguments, after --.", valueName: "command"))
    var command: [String] = []
    @OptionGroup var options: GlobalOptions

    mutating func validate() throws {
        guard !self.from.contains("") else { throw ValidationError("the peer's name is empty") }
        guard self.group != "" else { throw ValidationError("the group's name is empty") }
        guard self.output != "" else { throw ValidationError("the directory's path is empty") }
        guard (1...Self.jobsLimit).contains(self.jobs ?? 1) else { throw ValidationError("--jobs is 1 to \(Self.jobsLimit)") }
        if let retry = self.retry, retry.value < Self.shortestRetry { throw ValidationError("--retry is 100ms or more") }
        if self.subject == .message, self.output != nil { throw ValidationError("--output is not for messages; leave it out") }
        if self.subject == .file, self.type != nil { throw ValidationError("--type is not for files; leave it out") }
        guard !self.command.isEmpty || self.subject == .file else { throw ValidationError("no command given; write it after --") }
    }

    mutating func run() async throws {
        let (subject, from, group, type) = (self.subject, self.from, self.group, self.type)
        let (jobs, retry, options) = (self.jobs ?? 1, self.retry?.duration ?? Self.usualRetry, self.options)
        let command = self.command.isEmpty ? nil : try HandlerCommand(self.command)
        let directory = subject == .file ? try SafeDirectory(path: self.output ?? ".") : nil
        try await options.withClient { client in
            var senders: [PeerID] = []
            for name in from { if let peer = try await client.peerID(name), !senders.contains(peer) { senders.append(peer) } }
            let group = try await client.groupID(group)
            if let directory {
                let source = FileHandling(
                    client: client, command: command, senders: senders, group: group, directory: directory, asJSON: options.json)
                try await source.follow(jobs: jobs, retry: retry)
            } else if let command {
                if Terminal.isError { Standard.note("waiting; press Ctrl-C to stop") }
                let source = MessageHandling(
                    client: client, command: command, senders: senders, group: group, type: type, asJSON: options.json)
                try await HandlerLoop(source: source, jobs: jobs, retry: retry).run()
            }
        }
    }
}
