/// earshotd(8).
enum DaemonPage {
    static func write(_ command: CommandDump.Command, _ article: Article, to page: inout Mdoc) {
        page.raw(".Sh NAME\n.Nm earshotd\n.Nd daemon that exchanges messages and files with machines on the local network")
        page.raw(".Sh SYNOPSIS\n.Nm")
        for argument in command.shown { page.raw("." + Mdoc.synopsis(argument)) }
        page.raw(".Sh DESCRIPTION")
        command.abstract.map { page.prose($0) }
        page.raw(
            """
            The daemon advertises this machine and discovers others by DNS-SD, connects to them over TLS 1.3, and stores received messages
            and files on disk.
            It serves the control API, HTTP on a Unix socket, which
            .Xr earshot 1
            uses.
            .Pp
            .Nm
            runs in the foreground and writes its log to standard error.
            A session of two peers survives restarts, and lasts until one of them leaves it.
            .Pp
            """)
        command.discussion.map { page.prose($0) }
        page.raw(".Sh OPTIONS")
        page.list(command.shown)
        page.raw(Self.commands)
        for section in article.beforeExamples { page.section(section) }
        page.raw(Self.rest)
        for section in article.examples { page.section(section) }
        page.raw(".Sh SEE ALSO\n.Xr earshot 1 ,\n.Xr earshotd.conf 5 ,\n.Xr earshot-api 7 ,\n.Xr earshot-localsend 7 ,")
        page.raw(".Xr earshot-performance 7 ,\n.Xr earshot-security 7 ,\n.Xr earshot-troubleshooting 7 ,\n.Xr avahi-daemon 8")
    }

    private static let commands = """
        .Sh COMMANDS
        .Bl -tag -width Ds
        .It Cm identity show
        Print the peer id, the kind of key and the location of the key.
        .It Cm identity new
        Create a new key, which is used from the next start.
        To other peers, this machine is then a new peer.
        The old key is kept in the same directory, in a file that has the date in its name, with mode 0600.
        .It Cm identity export Op Fl o Ar file
        Write key and certificate as PEM, to a new file with mode 0600 or to standard output.
        .El
        .Pp
        These commands work on the files of the state directory, and accept
        .Fl -config
        and
        .Fl -state-directory .
        With
        .Fl -state-directory Pa /var/lib/earshot ,
        they use the settings of the service,
        .Pa /etc/earshot/earshotd.conf ,
        unless
        .Fl -config
        names others.
        .Sh SIGNALS
        .Bl -tag -width Ds
        .It Dv SIGTERM , SIGINT
        Close all connections properly, and exit.
        Sessions survive.
        .It Dv SIGHUP
        Reload the settings.
        If they have an error, the daemon logs it and keeps the previous settings.
        .El
        """

    private static let rest = """
        .Sh EXIT STATUS
        .Bl -tag -width Ds -compact
        .It 0
        the daemon was told to stop
        .It 1
        the daemon could not start or continue, and logs the reason; this includes a Unix group in
        .Bq control
        that does not exist yet
        .It 64
        usage error
        .It 66
        .Cm identity show
        or
        .Cm identity export :
        no identity exists yet
        .It 73
        .Cm identity export Fl o :
        the file cannot be created, or exists already
        .It 74
        .Cm identity :
        the identity cannot be read, is damaged, or cannot be stored; or the output cannot be written
        .It 78
        the settings have an error, or a later version has left a state that this version cannot read
        .El
        .Sh ENVIRONMENT
        .Bl -tag -width Ds
        .It Ev EARSHOT_SECTION_KEY
        A setting.
        For example,
        .Ev EARSHOT_PEER_NAME
        sets
        .Va name
        in
        .Bq peer .
        The variable overrides the settings file; an option overrides the variable.
        .It Ev EARSHOT_UNIT_SECTION_KEY
        A default setting of a unit or an image.
        The settings file overrides it.
        The packaged service sets
        .Ev EARSHOT_UNIT_CONTROL_GROUP
        to earshot.
        An empty
        .Ev EARSHOT_SECTION_KEY ,
        or an empty value in the file, removes such a default.
        .It Ev CONFIGURATION_DIRECTORY , STATE_DIRECTORY , RUNTIME_DIRECTORY
        The directories of the settings, the state and the socket, if
        .Xr systemd 1
        starts the daemon.
        .It Ev XDG_CONFIG_HOME , XDG_STATE_HOME , XDG_RUNTIME_DIR
        The directories that contain them otherwise.
        .El
        .Sh FILES
        .Bl -tag -width Ds
        .It Pa /etc/earshot/earshotd.conf
        Settings of the system's daemon: see
        .Xr earshotd.conf 5 .
        .It Pa /var/lib/earshot
        Its identity, messages and received files.
        A process that can read the private key in this directory can impersonate this machine.
        .It Pa /run/earshot/earshot.sock
        Its control socket.
        .It Pa \\(ti/.config/earshot/earshotd.conf , \\(ti/.local/state/earshot , $XDG_RUNTIME_DIR/earshot/earshot.sock
        The same for a daemon that a user runs.
        .El
        """
}
