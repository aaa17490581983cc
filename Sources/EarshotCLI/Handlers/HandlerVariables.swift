import EarshotClient
import EarshotSafety

/// The variables that tell a command what has arrived. All of them are always set; those that do not apply are empty.
///
/// A peer chooses most values. Control and other invisible characters are escaped as on a terminal, so that a script can print them.
struct HandlerVariables: Hashable, Sendable {
    var event: String
    var from = ""
    var fromID: PeerID?
    var trust = ""
    var group = ""
    var messageID: MessageID?
    var inReplyTo: MessageID?
    var contentType = ""
    var size: UInt64?
    /// A safe name as it is, any other name escaped.
    var name = ""
    /// The daemon's socket, so that the command reaches the same daemon.
    var socket: String

    init(event: String, socket: String) {
        (self.event, self.socket) = (event, socket)
    }

    private var values: [(name: String, value: String)] {
        [
            ("EARSHOT_EVENT", self.event.escapedForDisplay), ("EARSHOT_FROM", self.from.escapedForDisplay),
            ("EARSHOT_FROM_ID", self.fromID?.description ?? ""), ("EARSHOT_TRUST", self.trust.escapedForDisplay),
            ("EARSHOT_GROUP", self.group.escapedForDisplay), ("EARSHOT_MESSAGE_ID", self.messageID?.description ?? ""),
            ("EARSHOT_IN_REPLY_TO", self.inReplyTo?.description ?? ""),
            ("EARSHOT_CONTENT_TYPE", self.contentType.escapedForDisplay), ("EARSHOT_SIZE", self.size.map { "\($0)" } ?? ""),
            ("EARSHOT_NAME", self.name), ("EARSHOT_SOCKET", self.socket),
        ]
    }

    var names: [String] { self.values.map(\.name) }
    /// The variables as execve(2) takes them.
    var lines: [String] { self.values.map { "\($0.name)=\($0.value)" } }
}

extension HandlerVariables {
    /// Sets the variables of a message.
    init(_ message: ControlAPI.Message, trust: String, socket: String) {
        self.init(event: ControlAPI.Event.Kind.messageReceived.rawValue, socket: socket)
        (self.from, self.fromID, self.trust) = (message.sender.name, message.sender.id, trust)
        self.group = message.group?.name ?? ""
        (self.messageID, self.contentType, self.size) = (message.id, message.contentType, UInt64(message.size))
        self.inReplyTo = message.inReplyTo
    }
}
