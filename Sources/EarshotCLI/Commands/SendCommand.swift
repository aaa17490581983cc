import ArgumentParser
import EarshotClient
import EarshotSafety

struct SendCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "send", abstract: "Send a message, and wait until the receiver has stored it.",
        usage: """
            earshot send PEER TEXT... [--to PEER]... [--mode MODE] [--type MIME] [--queue] [--timeout TIME]
            earshot send PEER TEXT... --in-reply-to ID
            earshot send --all TEXT...
            earshot send --group GROUP TEXT...
            earshot send PEER - < message
            earshot send PEER --file FILE
            earshot send PEER --lines < messages
            """)

    /// The delivery mode, as the user writes it.
    enum Mode: String, ExpressibleByArgument, CaseIterable {
        case reliable, unreliable
    }

    @Argument(help: .peer, completion: .reachablePeer)
    var peer: String?
    @Argument(help: ArgumentHelp("Text of the message, or - for standard input.", valueName: "text"))
    var text: [String] = []
    @Option(name: .long, help: "Send the contents of this file as the message.", completion: .file())
    var file: String?
    @Flag(name: .long, help: "Send each line of standard input as a separate message, in order; skip empty lines.")
    var lines = false
    @Option(name: .long, help: ArgumentHelp("Another recipient; may be repeated.", valueName: "peer"), completion: .reachablePeer)
    var to: [String] = []
    @Flag(name: .long, help: "Send to all peers in a session, instead of PEER.")
    var all = false
    @Option(
        name: .long, help: ArgumentHelp("Send to all other members of this group, instead of PEER.", valueName: "group"),
        completion: .group)
    var group: String?
    @Option(name: .long, help: "Delivery mode: reliable, or unreliable (sent once, delivered only to waiting programs).")
    var mode = Mode.reliable
    @Option(name: .long, help: ArgumentHelp("Content type; default: text/plain for text.", valueName: "mime"))
    var type: String?
    @Flag(name: .long, help: "Queue the message in the daemon, which delivers it when the peer is available.")
    var queue = false
    @Option(
        name: .long,
        help: ArgumentHelp(
            "Maximum time to try, in seconds or with a unit, such as 30, 1.5s or 2min; default: 10s; with --queue, outbox_age.",
            valueName: "time"))
    var timeout: Seconds?
    @Option(
        name: .long, help: ArgumentHelp("The id of the message to which this one replies.", valueName: "id"),
        transform: { text in
            guard let id = MessageID(text) else { throw ValidationError("earshot receive --json shows the ids of messages") }
            return id
        })
    var inReplyTo: MessageID?
    @Option(name: .long, help: ArgumentHelp("PIN of a LocalSend device that asks for one.", valueName: "pin"))
    var pin: String?
    @OptionGroup var options: GlobalOptions

    mutating func validate() throws {
        if self.all || self.group != nil {
            if !self.to.isEmpty { throw ValidationError("give only one of --all, --group and the peers") }
            if self.all, self.group != nil { throw ValidationError("give either --all or --group, not both") }
            guard self.group != "" else { throw ValidationError("the group's name is empty") }
            // No peer is named, so that all words belong to the message.
            self.text = (self.peer.map { [$0] } ?? []) + self.text
            self.peer = nil
        } else if self.peer == nil {
            throw ValidationError("no recipient given; give a PEER, --all or --group")
        }
        if self.queue, self.mode == .unreliable {
            throw ValidationError("an unreliable message cannot be queued; give either --mode unreliable or --queue")
        }
        if self.file != nil, !self.text.isEmpty { throw ValidationError("give either TEXT or --file, not both") }
        if self.lines {
            guard self.text.isEmpty, self.file == nil else {
                throw ValidationError("--lines reads standard input; give only one of --lines, TEXT and --file")
            }
        } else if self.file == nil, self.text.isEmpty {
            throw ValidationError("no message given; give TEXT, -, --lines or --file FILE")
        }
        try MessageBody.check(text: self.text, type: self.type, timeout: self.timeout)
    }

    mutating func run() async throws {
        guard !self.lines else { return try await self.sendLines() }
        let options = self.options
        let body = try MessageBody.read(self.text, file: self.file, peer: self.peer)
        // The id is chosen here, so that an interruption can name the message.
        let id = MessageID.random()
        let request = ControlAPI.MessageRequest(
            to: self.recipients, body: body,
            contentType: self.type ?? MessageBody.contentType(of: body),
            mode: self.mode == .reliable ? .reliable : .unreliable, messageID: id, queue: self.queue ? true : nil,
            timeout: self.timeout?.duration, inReplyTo: self.inReplyTo, pin: self.pin)
        let peer = self.to.isEmpty ? self.peer : nil
        let (recipients, group) = (self.peer.map { [$0] + self.to }, self.group)
        let (receipt, names) = try await options.withClient { client in
            let warning = ProtectionWarning(client: client)
            // No warning for a group: its own setting decides whether members may connect without TLS.
            if let recipients { await warning.tell(of: recipients) } else if group == nil { await warning.tellOfAll() }
            do {
                let receipt = try await Self.send(request, id, client)
                return (receipt, await DeliveryOutcomes.names(for: receipt.value.recipients, client))
            } catch let error as ControlError {
                throw CommandFailure(error, peer: peer)
            }
        }
        if options.json { try Standard.write(json: receipt.json) }
        try self.judge(receipt.value, names)
    }

    private var recipients: ControlAPI.MessageRequest.Recipients {
        if let group = self.group { return .group(group) }
        return self.peer.map { .peers([$0] + self.to) } ?? .all
    }

    /// Sends the message. The daemon keeps a message that it has accepted: an interruption only stops waiting, and says so.
    static func send(
        _ request: ControlAPI.MessageRequest, _ id: MessageID, _ client: ControlClient
    ) async throws -> ControlReply<ControlAPI.MessageReceipt> {
        guard request.mode == .reliable else { return try await client.send(request) }
        return try await Interrupts.takingBack {
            Standard.note("no longer waiting; message \(id) may still be delivered until it times out")
        } _: {
            try await client.send(request)
        }
    }

    private func sendLines() async throws {
        let (recipients, group) = (self.peer.map { [$0] + self.to }, self.group)
        let upload = LineUpload(
            template: LineUpload.Template(
                recipients: recipients, group: self.group, contentType: self.type, isUnreliable: self.mode == .unreliable,
                isQueued: self.queue, timeout: self.timeout?.value, inReplyTo: self.inReplyTo, pin: self.pin), showsJSON: self.options.json)
        try await self.options.withClient { client in
            let warning = ProtectionWarning(client: client)
            if let recipients { await warning.tell(of: recipients) } else if group == nil { await warning.tellOfAll() }
            try await upload.run(client)
        }
    }

    private func judge(_ receipt: ControlAPI.MessageReceipt, _ names: [PeerID: String]) throws {
        var outcomes = DeliveryOutcomes(isQueued: self.queue, isUnreliable: self.mode == .unreliable)
        outcomes.names = names
        outcomes.add(receipt.messageID, receipt.recipients)
        try outcomes.end()
    }
}
