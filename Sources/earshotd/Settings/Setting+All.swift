internal import Earshot
internal import EarshotDiscovery
internal import EarshotWire
internal import Logging

extension Setting {
    /// The sections of the settings file, in its order.
    static let sections = [
        "peer", "identity", "discovery", infoSection, "invitations", "groups", "messages", "resources", "localsend",
        "control", "log",
    ]

    /// Every setting, in the order of the settings file.
    static let all = peer + identity + discovery + invitations + groups + messages + resources + localSend + control + log

    private static let peer = [
        Setting(
            "peer.name", \.node.displayName, .label(DisplayName.init), flag: Flag(name: "name", value: "name", text: \.name),
            "Name that other peers see, 1 to 63 bytes (default: the host name)."),
        Setting(
            "peer.service_type", \.node.serviceType, .label(ServiceType.init), default: "earshot",
            flag: Flag(name: "service-type", value: "type", text: \.serviceType), needsRestart: true,
            "Service type: only peers of the same type see each other (default: earshot)."),
        Setting(
            "peer.port", \.node.port, .number(0...65535), default: "47110", flag: Flag(name: "port", value: "n", text: \.port),
            needsRestart: true, "TCP port to listen on (default: 47110, or a free port if 47110 is in use).",
            details: "If the port is set here, even to 47110, and is in use, the daemon does not start. 0 means any free port."
        ).with(\.node.portIsFixed, SettingParser { $0.origin != .defaults }),
        Setting(
            "peer.encryption", \.node.encryption, .choice([.required, .optional, .none]), default: "required",
            "Encryption of connections: required, optional or none; see earshot-security(7)."),
    ]

    private static let identity = [
        Setting(
            "identity.certificate", \.node.certificate, .optional(.path()), needsRestart: true,
            "PEM file (absolute path) with a certificate and its intermediates, 4 certificates at most.",
            details: """
                The key is P-256, P-384, RSA (2048 to 8192 bits) or Ed25519. Set both certificate and private_key, or neither. If neither is \
                set, the daemon generates a key at its first start and keeps it in the state directory.
                """
        ).with(\.certificateMark),
        Setting(
            "identity.private_key", \.node.privateKey, .optional(.path()), needsRestart: true,
            "PEM file (absolute path, mode 0600) with the certificate's private key."),
        Setting(
            "identity.authorities", \.node.authorities, .list(of: .path()), needsRestart: true,
            "PEM files (absolute paths, comma-separated) of certificate authorities.",
            details: "Peers whose certificate is signed by one of them are trusted, over TLS only."
        ).with(\.authoritiesMark),
    ]

    private static let discovery = [
        Setting(
            "discovery.backend", \.backend, .choice(DiscoveryBackend.allCases), default: "auto",
            flag: Flag(name: "discovery", value: "backend", text: \.discovery), "Discovery backend: auto, avahi, embedded or none.",
            details: "auto uses Avahi if it runs, otherwise the embedded responder. none finds only the peers listed below."),
        Setting("discovery.advertise", \.node.advertise, .boolean(), default: "yes", "Whether other peers can discover this one."),
        Setting("discovery.browse", \.node.browse, .boolean(), default: "yes", "Whether to look for other peers."),
        Setting(
            "discovery.peers", \.node.configuredPeers, .list(of: .peer()),
            "Peers to connect to without discovery: [PEERID@]host:port, comma-separated.",
            details: "With PEERID, connections that present another key are refused."),
    ]

    private static let invitations = [
        Setting(
            "invitations.from_unknown", \.node.fromUnknown, .choice([.ask, .accept, .reject]), default: "ask",
            "Invitations from untrusted peers (their trust is unknown): ask (a user decides), accept or reject."),
        Setting(
            "invitations.from_trusted", \.node.fromTrusted, .choice([.accept, .ask]), default: "accept",
            "Invitations from trusted peers: accept or ask."),
        Setting(
            "invitations.paired_only", \.node.pairedOnly, .boolean(), default: "no",
            "Whether to decline invitations from untrusted peers without showing them, whatever from_unknown says."),
        Setting(
            "invitations.timeout", \.node.invitationTimeout, .duration(.seconds(1)...EarshotLimits.invitationTimeout), default: "5min",
            "How long an invitation from this machine waits for an answer, 1s to 1d."),
    ]

    private static let groups = [
        Setting(
            "groups.invitations", \.node.groupInvitations, .choice([.ask, .accept, .reject]), default: "ask",
            "Invitations to groups: ask (a user decides), accept (if from a trusted peer, else ask) or reject."),
        Setting(
            "groups.files", \.node.groupFiles, .choice(GroupFilePolicy.allCases), default: "accept",
            "Files sent to a group: accept, or ask (a user decides).",
            details: """
                With ask, files from members that are trusted or in a session with this machine are still accepted. If accept in [resources] \
                is ask, a user decides about every file.
                """),
    ]

    private static let messages = [
        Setting(
            "messages.inbox_limit", \.node.inboxLimit, .number(1...1_000_000_000), default: "10000",
            "Maximum number of unread messages in the inbox.",
            details: """
                At the limit, further messages are refused (inbox-full). At most as many read messages are kept; beyond that, the oldest are \
                deleted.
                """),
        Setting(
            "messages.inbox_size", \.node.inboxSize, .size(), default: "256M", "Maximum size of the unread messages in the inbox.",
            details: "The same limit applies to the read messages."),
        Setting(
            "messages.inbox_age", \.node.inboxAge, .duration(.zero ... .seconds(Int64(Int32.max))), default: "30d",
            "Age at which read messages are deleted.", details: "Only time during which the daemon runs counts."),
        Setting(
            "messages.outbox_age", \.node.outboxAge, .duration(.seconds(1)...EarshotLimits.outboxAgeLimit), default: "7d",
            "How long a message sent with --queue waits for its recipient, up to 90d.",
            details: "Only time during which the daemon runs counts."),
        Setting("messages.receipts", \.node.receipts, .boolean(), default: "yes", "Whether to tell senders that their messages were read."),
    ]

    private static let resources = [
        Setting(
            "resources.accept", \.node.acceptResources, .choice(OfferPolicy.allCases), default: "session",
            "Files from peers in a session: session (accept, within the limits below) or ask (wait for `earshot file accept`)."),
        Setting(
            "resources.directory", \.node.receiveDirectory, .optional(.path()), "Directory for received files, an absolute path.",
            details: """
                Every user who may read the directory may read the files in it. If no directory is set, files stay in the daemon's spool until \
                `earshot file get`. The state directory and its spool are refused. The packaged service needs permission to write to the \
                directory: see "Received files" in `man earshotd.conf`.
                """),
        Setting(
            "resources.on_conflict", \.node.onNameConflict, .choice(NameConflictPolicy.allCases), default: "rename",
            """
            If the directory has a file of the same name: rename (to "name (2).ext"), overwrite, or skip (refuse the new file, with an error \
            at the sender).
            """),
        Setting(
            "resources.max_size", \.node.maximumResourceSize, .optional(.size()),
            "Largest file to accept (default: limited only by quota and reserve)."),
        Setting(
            "resources.quota", \.node.quota, .size(), default: "20G", "Maximum disk space of all received files, in whole blocks.",
            details: """
                The unfinished files of one peer may use a quarter of the quota, or three quarters if the peer is trusted. A single file \
                cannot be larger than that.
                """),
        Setting("resources.reserve", \.node.reserve, .percentage(), default: "5%", "Part of the file system to leave free."),
        Setting(
            "resources.send_limit", \.node.sendLimit, .rate(), default: "0",
            "Maximum rate of all files that are sent, in bytes per second, such as 10M; 0 means no limit.",
            details: "The files that are being sent share the rate evenly. Messages and streams are not limited."),
        Setting(
            "resources.receive_limit", \.node.receiveLimit, .rate(), default: "0",
            "Maximum rate of all files that are received, in bytes per second, such as 10M; 0 means no limit.",
            details: "The files that are being received share the rate evenly. Messages and streams are not limited."),
    ]

    private static let localSend = [
        Setting(
            "localsend.enabled", \.node.localSend.isEnabled, .boolean(), default: "no",
            "Whether to exchange files and texts with LocalSend devices on the network; see earshot-localsend(7).",
            details: """
                If it is yes, this machine announces its name to everyone on the network, and every LocalSend device there can offer files. \
                A user decides about each offer, unless [invitations] says otherwise. A device's name proves nothing: anyone can choose it. \
                TCP and UDP port 53317 are opened, and a firewall must let in both.
                """),
        Setting(
            "localsend.port", \.node.localSend.port, .number(0...65535), default: "53317", needsRestart: true,
            "TCP and UDP port of LocalSend (default: 53317).",
            details: """
                Devices with another UDP port do not see this machine. If the TCP port is in use, a free port is used and announced. 0 means \
                any free TCP port, and UDP port 53317.
                """),
        Setting(
            "localsend.pin", \.node.localSend.pin, .optional(.pin(EarshotLimits.devicePINLength)),
            "PIN that LocalSend devices must give before they can offer anything, 6 to 64 characters.",
            details: """
                Trusted devices need no PIN, and a user still decides about each offer. Use letters and digits, which every sender can \
                transmit. Every user who may read this file can read the PIN. No program shows it.
                """),
        Setting(
            "localsend.timeout", \.node.localSend.timeout, .duration(EarshotLimits.deviceOfferTimes), default: "5min",
            "How long an offer from a LocalSend device waits for a user, 5s to 1d."),
    ]

    private static let control = [
        Setting(
            "control.socket", \.socket, .optional(.path()), flag: Flag(name: "socket", value: "path", text: \.socket), needsRestart: true,
            "Path of the Unix socket that serves the control API.",
            details: """
                Default: $RUNTIME_DIRECTORY/earshot.sock, else $XDG_RUNTIME_DIR/earshot/earshot.sock, else, for root, \
                /run/earshot/earshot.sock. Other users must set a path if XDG_RUNTIME_DIR is not set. Outside /run/earshot, the packaged \
                service needs permission to write (ReadWritePaths): see "Received files" in `man earshotd.conf`.
                """),
        Setting(
            "control.group", \.group, .optional(.text()), needsRestart: true,
            "Unix group whose members may use the socket, in addition to root and the daemon's user.",
            details: """
                The daemon's user must belong to the group. The default of the packaged service is earshot. An empty value means no group.
                """),
    ]

    private static let log = [
        Setting(
            "log.level", \.logLevel, .choice(Logger.Level.allCases), default: "info",
            flag: Flag(name: "log-level", value: "level", text: \.logLevel),
            "Least severe messages to log: trace, debug, info, notice, warning, error or critical.")
    ]
}
