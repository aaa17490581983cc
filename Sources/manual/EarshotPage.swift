/// earshot(1): one page with all verbs, as systemctl's and nmcli's are, for a person looks one up beside the other.
enum EarshotPage {
    static func write(_ command: CommandDump.Command, _ article: Article, to page: inout Mdoc) {
        let verbs = Self.flattened(command)
        let common = Self.common(verbs.map(\.command))
        page.raw(".Sh NAME\n.Nm earshot\n.Nd messages and files between machines within earshot\n.Sh SYNOPSIS\n.Nm\n.Ar command")
        page.raw(".Op Ar argument ...")
        for argument in common where argument.kind != "flag" || argument.valueName == "json" { page.raw("." + Mdoc.synopsis(argument)) }
        page.raw(Self.description)
        page.raw(".Sh COMMANDS\n.Bl -tag -width Ds")
        for (words, verb) in verbs {
            page.raw(".It Xo\n.Cm \(words)")
            let own = verb.shown.filter { !common.contains($0) }
            for argument in own.filter({ $0.kind != "positional" }) + own.filter({ $0.kind == "positional" }) {
                page.raw("." + Mdoc.synopsis(argument))
            }
            page.raw(".Xc")
            verb.abstract.map { page.prose($0) }
            verb.discussion.map { page.prose($0) }
            if !own.isEmpty { page.raw(".Pp") }
            page.list(own)
        }
        page.raw(".El\n.Sh OPTIONS\nEvery command takes these too;\n.Fl -socket\nand\n.Fl -json\nmay stand before its name as well.\n.Pp")
        page.list(common)
        for section in article.beforeExamples { page.section(section) }
        page.raw(Self.rest)
        for section in article.examples { page.section(section) }
        page.raw(".Sh SEE ALSO\n.Xr earshotd.conf 5 ,\n.Xr earshot-api 7 ,\n.Xr earshot-security 7 ,")
        page.raw(".Xr earshot-troubleshooting 7 ,\n.Xr earshotd 8")
    }

    /// The verbs that do something, with the words that name them, such as `file send`.
    static func flattened(_ command: CommandDump.Command, words: [String] = []) -> [(words: String, command: CommandDump.Command)] {
        command.verbs.flatMap { verb in
            let name = words + [verb.commandName]
            return verb.verbs.isEmpty ? [(name.joined(separator: " "), verb)] : Self.flattened(verb, words: name)
        }
    }

    /// The arguments that every verb takes.
    static func common(_ verbs: [CommandDump.Command]) -> [CommandDump.Argument] {
        (verbs.first?.shown ?? []).filter { argument in verbs.allSatisfy { $0.shown.contains(argument) } }
    }

    private static let description = """
        .Sh DESCRIPTION
        .Nm
        is the command line of
        .Xr earshotd 8 ,
        which finds the machines within earshot on the local network, agrees with them to talk, and carries messages and files between them:
        without a server, an account, or the internet.
        .Pp
        A
        .Em peer
        is one machine with one key.
        On the command line it is named by its id, by 8 or more leading characters of that, or by its display name.
        The name of a known peer, one that is trusted, in a session, or kept by another decision, never means a stranger, whether the peer is
        there or away, and goes before the beginning of an id; that means only ids that are proven, kept or in the settings, never those that
        are only advertised.
        Two known peers with one name are ambiguous, wherever they are.
        Where several peers could be meant, the command lists them and ends with 65.
        A
        .Em session
        is agreed once, by an invitation that is accepted, and kept until one side leaves it.
        .Pp
        A
        .Em group
        is up to 64 peers that are one conversation: a message or a file goes to all others, and each acknowledges it from its own disk.
        Every member lets others in, unless the group is closed.
        Whoever made it is its creator, and alone renames it, takes members out and dissolves it.
        Two members need no session, and agree to nothing but what is said in the group.
        On the command line a group is named by its id, by 8 or more leading characters of that, or by its name: several are 65, none is 68.
        A member that is away gets what was sent with
        .Fl -queue
        when it is back; whoever joins later gets nothing older.
        .Pp
        Data goes to standard output and words to standard error.
        Names and texts that came from a peer are shown with control, bidirectional and zero-width characters escaped.
        """

    /// What the exit codes mean, for the page and for the test that holds it to the program's.
    static let exitCodes: [(code: Int32, meaning: String)] = [
        (0, "done"), (1, "other failure"), (64, "wrong usage"), (65, "an ambiguous name, nothing of that name, or bad data"),
        (66, "no such input file"),
        (68, "unknown peer or group, or not a member"), (69, "the daemon is not running"), (73, "cannot create the output"),
        (74, "input or output error, no room, or a source that has changed"), (75, "timed out or unconfirmed: try again"),
        (76, "protocol error"),
        (77, "declined, not permitted, or no session"), (78, "bad configuration"),
        (79, "not sent: the peer never received it; safe to send again"), (130, "interrupted"),
    ]

    private static var rest: String {
        """
        .Sh ENVIRONMENT
        .Bl -tag -width Ds
        .It Ev EARSHOT_SOCKET
        The daemon's socket, where
        .Fl -socket
        is not given.
        .It Ev NO_COLOR
        No colours, even on a terminal.
        .It Ev XDG_RUNTIME_DIR
        Where the user's own daemon has its socket.
        .El
        .Sh FILES
        .Bl -tag -width Ds
        .It Pa $XDG_RUNTIME_DIR/earshot/earshot.sock
        The user's own daemon, which is taken first.
        .It Pa /run/earshot/earshot.sock
        The system's daemon; members of the group
        .Ql earshot
        may use it.
        .El
        .Sh EXIT STATUS
        .Bl -tag -width Ds -compact
        \(Self.exitCodes.map { ".It \($0.code)\n\($0.meaning)" }.joined(separator: "\n"))
        .El
        """
    }
}
