import ArgumentParser
import EarshotClient
import EarshotSafety

struct OnCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "on", abstract: "Run a command for each message, file or event that arrives.",
        discussion: """
            With message, runs COMMAND once for each unread message, oldest first, with the message on its standard input, and marks the \
            message read when COMMAND exits with 0. With --reply, what COMMAND prints is sent back to the sender. With file, fetches each received file, and runs COMMAND with its path. With an event, \
            such as peer.found, or * for all, runs COMMAND with the event's JSON on its standard input. See earshot-on(1).
            """)

    /// The first argument: the kind of arrivals that a command handles.
    enum Subject: Hashable, Sendable, ExpressibleByArgument {
        case message
        case file
        /// Events of one type, or of all.
        case event(ControlAPI.Event.Kind?)

        init?(argument: String) {
            switch argument {
            case "message": self = .message
            case "file": self = .file
            case "*": self = .event(nil)
            default:
                guard let kind = ControlAPI.Event.Kind(rawValue: argument) else { return nil }
                self = .event(kind)
            }
        }

        static var allValueStrings: [String] { ["message", "file"] + ControlAPI.Event.Kind.allCases.map(\.rawValue) + ["*"] }
        static var defaultCompletionKind: CompletionKind { .list(Self.allValueStrings.dropLast()) }
    }

    /// The most commands that run at a time.
    static let jobsLimit = 64
    /// The shortest pause before a retry, in seconds.
    static let shortestRetry = 0.1
    /// The pause before the first retry, unless the user gives one.
    static let usualRetry: Duration = .seconds(60)

    @Argument(help: ArgumentHelp("message, file, or the type of an event.", valueName: "what"))
    var subject: Subject
    @Option(name: .long, help: ArgumentHelp("Only what this peer sends; may be repeated.", valueName: "peer"), completion: .provenPeer)
    var from: [String] = []
    @Option(name: .long, help: ArgumentHelp("Only what is sent to this group.", valueName: "group"), completion: .group)
    var group: String?
    @Option(name: .long, help: ArgumentHelp("Only messages of this type, such as text/plain or image/*.", valueName: "mime"))
    var type: ContentType?
    @Flag(name: .long, help: "Send what the command prints back to the sender of the message, as a reply.")
    var reply = false
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
    @Option(name: .long, help: ArgumentHelp("Start after this event, if the daemon still has it.", valueName: "n"))
    var since: UInt64?
    @Argument(parsing: .postTerminator, help: ArgumentHelp("The command and its arguments, after --.", valueName: "command"))
    var command: [String] = []
    @OptionGroup var options: GlobalOptions

    mutating func validate() throws {
        guard !self.from.contains("") else { throw ValidationError("the peer's name is empty") }
        guard self.group != "" else { throw ValidationError("the group's name is empty") }
        guard self.output != "" else { throw ValidationError("the directory's path is empty") }
        guard (1...Self.jobsLimit).contains(self.jobs ?? 1) else { throw ValidationError("--jobs is 1 to \(Self.jobsLimit)") }
        if let retry = self.retry, retry.value < Self.shortestRetry { throw ValidationError("--retry is 100ms or more") }
        switch self.subject {
        case .message: try self.refuse("messages", ["--output": self.output != nil, "--since": self.since != nil])
        case .file: try self.refuse("files", ["--type": self.type != nil, "--since": self.since != nil, "--reply": self.reply])
        case .event:
            try self.refuse(
                "events",
                [
                    "--from": !self.from.isEmpty, "--group": self.group != nil, "--type": self.type != nil, "--output": self.output != nil,
                    "--jobs": self.jobs != nil, "--retry": self.retry != nil, "--reply": self.reply,
                ])
        }
        guard !self.command.isEmpty || self.subject == .file else { throw ValidationError("no command given; write it after --") }
    }

    private func refuse(_ subject: String, _ options: KeyValuePairs<String, Bool>) throws {
        for (option, isGiven) in options where isGiven { throw ValidationError("\(option) is not for \(subject); leave it out") }
    }

    mutating func run() async throws {
        let (subject, from, group, type, since) = (self.subject, self.from, self.group, self.type, self.since)
        let (jobs, retry, reply, options) = (self.jobs ?? 1, self.retry?.duration ?? Self.usualRetry, self.reply, self.options)
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
                if case .event(let kind) = subject {
                    let source = EventHandling(client: client, command: command, type: kind?.rawValue, since: since)
                    try await HandlerLoop(source: source, jobs: 1, retry: retry).run()
                } else {
                    let source = MessageHandling(
                        client: client, command: command, senders: senders, group: group, type: type, asJSON: options.json, replies: reply)
                    try await HandlerLoop(source: source, jobs: jobs, retry: retry).run()
                }
            }
        }
    }
}
