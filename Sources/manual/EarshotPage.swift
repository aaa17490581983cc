/// earshot(1): one page with all verbs, like those of systemctl and nmcli, because users compare verbs.
enum EarshotPage {
    static func write(_ command: CommandDump.Command, _ article: Article, to page: inout Mdoc) {
        let verbs = Self.flattened(command)
        let common = Self.common(verbs.map(\.command))
        page.raw(".Sh NAME\n.Nm earshot\n.Nd exchange messages and files with machines on the local network")
        page.raw(".Sh SYNOPSIS\n.Nm\n.Ar command")
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
        page.raw(".El\n.Sh OPTIONS\nThese options apply to every command.\n.Fl -socket\nand\n.Fl -json\nmay also precede the command.\n.Pp")
        page.list(common)
        for section in article.beforeExamples { page.section(section) }
        page.raw(Self.rest)
        for section in article.examples { page.section(section) }
        page.raw(".Sh SEE ALSO\n.Xr earshot-on 1 ,\n.Xr earshotd.conf 5 ,\n.Xr earshot-api 7 ,\n.Xr earshot-localsend 7 ,")
        page.raw(".Xr earshot-performance 7 ,\n.Xr earshot-security 7 ,\n.Xr earshot-troubleshooting 7 ,\n.Xr earshotd 8")
    }

    /// The verbs without subcommands, with their full names, such as `file send`.
    static func flattened(_ command: CommandDump.Command, words: [String] = []) -> [(words: String, command: CommandDump.Command)] {
        command.verbs.flatMap { verb in
            let name = words + [verb.commandName]
            return verb.verbs.isEmpty ? [(name.joined(separator: " "), verb)] : Self.flattened(verb, words: name)
        }
    }

    /// The arguments that all verbs have in common.
    static func common(_ verbs: [CommandDump.Command]) -> [CommandDump.Argument] {
        (verbs.first?.shown ?? []).filter { argument in verbs.allSatisfy { $0.shown.contains(argument) } }
    }

    private static let description = """
        .Sh DESCRIPTION
        .Nm
        is the command line of
        .Xr earshotd 8 .
        The daemon finds other machines on the local network, agrees with them on sessions, and carries messages and files between them.
        It needs no server, no account and no internet access.
        .Pp
        A
        .Em peer
        is one machine with one key.
        Name a peer by its id, by 8 or more leading characters of its id, or by its display name.
        .Sx NAMING PEERS
        says which peer a name means.
        .Pp
        A
        .Em session
        is an agreement of two peers to talk.
        One peer invites, the other accepts, and the session lasts until one of them leaves it.
        .Pp
        A
        .Em group
        is a conversation of up to 64 peers.
        A message or a file goes to all other members, and each of them acknowledges it when it is on disk.
        Every member can invite others, unless the group is closed.
        Only the creator can rename the group, remove members and dissolve it.
        .Pp
        Two members of a group need no session with each other.
        Membership allows only messages and files in the group.
        A message or a file that is sent with
        .Fl -queue
        waits for members that are away.
        New members receive nothing that was sent before they joined.
        .Pp
        Name a group by its id, by 8 or more leading characters of its id, or by its name.
        The command exits with 65 if several groups match, and with 68 if none does.
        .Pp
        Data goes to standard output, diagnostics go to standard error.
        In names and texts from a peer, control, bidirectional and zero-width characters are shown escaped.
        """

    /// The meaning of each exit status, for the page and for the test that compares it with the program's.
    static let exitCodes: [(code: Int32, meaning: String)] = [
        (0, "success"), (1, "other failure"), (64, "usage error"), (65, "ambiguous name, nothing with that name, or bad data"),
        (66, "input file not found"), (68, "unknown peer or group, or not a member"), (69, "the daemon is not running"),
        (73, "cannot create the output"), (74, "input or output error, no space, or the source has changed"),
        (75, "timed out or unconfirmed; try again"), (76, "protocol error"), (77, "declined, not permitted, or no session"),
        (78, "configuration error"), (79, "not sent: the peer did not receive it; safe to send again"),
        (126, "the command of earshot on cannot be run"), (127, "the command of earshot on does not exist"), (130, "interrupted"),
    ]

    private static var rest: String {
        """
        .Sh EXIT STATUS
        .Bl -tag -width Ds -compact
        \(Self.exitCodes.map { ".It \($0.code)\n\($0.meaning)" }.joined(separator: "\n"))
        .El
        .Sh ENVIRONMENT
        .Bl -tag -width Ds
        .It Ev EARSHOT_SOCKET
        The daemon's socket, if
        .Fl -socket
        is not given.
        .It Ev NO_COLOR
        Disables colours on a terminal.
        .It Ev XDG_RUNTIME_DIR
        The directory that holds the socket of the user's own daemon.
        .El
        .Sh FILES
        .Bl -tag -width Ds
        .It Pa $XDG_RUNTIME_DIR/earshot/earshot.sock
        The socket of the user's own daemon, which
        .Nm
        tries first.
        .It Pa /run/earshot/earshot.sock
        The socket of the system's daemon.
        Members of the Unix group
        .Ql earshot
        may use it.
        .El
        """
    }
}
