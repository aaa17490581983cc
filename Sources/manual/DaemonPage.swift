/// earshotd(8).
enum DaemonPage {
    static func write(_ command: CommandDump.Command, _ article: Article, to page: inout Mdoc) {
        page.raw(".Sh NAME\n.Nm earshotd\n.Nd messages and files between machines within earshot: the daemon\n.Sh SYNOPSIS\n.Nm")
        for argument in command.shown { page.raw("." + Mdoc.synopsis(argument)) }
        page.raw(".Sh DESCRIPTION")
        command.abstract.map { page.prose($0) }
        page.raw(
            """
            It advertises this machine and looks for others by DNS-SD, accepts and makes connections under TLS 1.3, keeps what arrives on
            disk, and serves the control API, HTTP on a Unix socket, that
            .Xr earshot 1
            uses.
            .Pp
            .Nm
            stays in the foreground and writes its log to standard error.
            Two peers that agreed to talk stay in their session until one of them leaves it, whatever restarts in between.
            .Pp
            """)
        command.discussion.map { page.prose($0) }
        page.raw(".Sh OPTIONS")
        page.list(command.shown)
        page.raw(Self.rest)
        for section in article.beforeExamples { page.section(section) }
        page.raw(Self.exitStatus)
        for section in article.examples { page.section(section) }
        page.raw(".Sh SEE ALSO\n.Xr earshot 1 ,\n.Xr earshotd.conf 5 ,\n.Xr earshot-api 7 ,\n.Xr earshot-security 7 ,")
        page.raw(".Xr earshot-troubleshooting 7 ,\n.Xr avahi-daemon 8")
    }

    private static let rest = """
        .Sh COMMANDS
        .Bl -tag -width Ds
        .It Cm identity show
        Print the peer id, the kind of key and where it is kept.
        .It Cm identity new
        Make a new key, from the next start on; peers see a new peer.
        The old one is kept beside it under the date, mode 0600.
        .It Cm identity export Op Fl o Ar file
        Write key and certificate as PEM, to a new file of mode 0600 or to standard output.
        .El
        .Pp
        They work on the files, and take
        .Fl -config
        and
        .Fl -state-directory .
        Where that is
        .Pa /var/lib/earshot
        and no
        .Fl -config
        is given, the settings are those of the service,
        .Pa /etc/earshot/earshotd.conf .
        .Sh SIGNALS
        .Bl -tag -width Ds
        .It Dv SIGTERM , SIGINT
        Connections are closed in order, and the daemon ends; sessions stay.
        .It Dv SIGHUP
        The settings are read again.
        Where they are wrong, the running ones stay in place and the log says what is wrong.
        .El
        .Sh ENVIRONMENT
        .Bl -tag -width Ds
        .It Ev EARSHOT_SECTION_KEY
        A setting, such as
        .Ev EARSHOT_PEER_NAME
        for
        .Va name
        in
        .Bq peer .
        Stronger than the file, weaker than an option.
        .It Ev EARSHOT_UNIT_SECTION_KEY
        The same for a unit or an image that comes ready made: weaker than the file.
        The packaged service sets
        .Ev EARSHOT_UNIT_CONTROL_GROUP
        to earshot.
        An empty
        .Ev EARSHOT_SECTION_KEY
        takes such a value back, as an empty one in the file does.
        .It Ev CONFIGURATION_DIRECTORY , STATE_DIRECTORY , RUNTIME_DIRECTORY
        Where
        .Xr systemd 1
        has the settings, the state and the socket.
        .It Ev XDG_CONFIG_HOME , XDG_STATE_HOME , XDG_RUNTIME_DIR
        Where they are otherwise.
        .El
        .Sh FILES
        .Bl -tag -width Ds
        .It Pa /etc/earshot/earshotd.conf
        Settings of the system's daemon; see
        .Xr earshotd.conf 5 .
        .It Pa /var/lib/earshot
        Its identity, messages and received files.
        A process that reads the identity's key there can pose as this machine.
        .It Pa /run/earshot/earshot.sock
        Its control socket.
        .It Pa \\(ti/.config/earshot/earshotd.conf , \\(ti/.local/state/earshot , $XDG_RUNTIME_DIR/earshot/earshot.sock
        The same of a daemon that a user runs.
        .El
        """

    private static let exitStatus = """
        .Sh EXIT STATUS
        .Bl -tag -width Ds -compact
        .It 0
        it was asked to end
        .It 1
        it could not start or go on, and says why: a group in the settings that the system does not know (yet) is a reason too, as a later
        start may find it
        .It 64
        an option is wrong
        .It 66
        .Cm identity show
        or
        .Cm identity export :
        no identity has been made there yet
        .It 73
        .Cm identity export Fl o :
        the file cannot be made, or is there already
        .It 74
        .Cm identity :
        the identity cannot be read, or is damaged, or a new one cannot be kept; or what was asked for cannot be written
        .It 78
        the settings are wrong, or a later version has left a state that this one cannot read
        .El
        """
}
