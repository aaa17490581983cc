import ArgumentParser
import EarshotClient
import EarshotSafety
import FoundationEssentials
import Glibc

struct SendCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "send", abstract: "Send a message, and wait until it is safe with the receiver.",
        usage: """
            earshot send PEER TEXT... [--to PEER]... [--mode MODE] [--type MIME] [--queue] [--timeout TIME]
            earshot send --all TEXT...
            earshot send --group GROUP TEXT...
            earshot send PEER - < message
            earshot send PEER --file FILE
            earshot send PEER --lines < messages
            """)

    /// How a message travels, as a person writes it.
    enum Mode: String, ExpressibleByArgument, CaseIterable {
        case reliable, unreliable
    }

    /// The longest body, in bytes: EarshotWire's Frames.md ("message").
    static let bodyLimit = 1024 * 1024

    @Argument(help: .peer, completion: .reachablePeer)
    var peer: String?
    @Argument(help: ArgumentHelp("The words of the message, or - for standard input.", valueName: "text"))
    var text: [String] = []
    @Option(name: .long, help: "Send the content of this file as the message.", completion: .file())
    var file: String?
    @Flag(name: .long, help: "Send every line of standard input as a message of its own, in order; empty lines are passed over.")
    var lines = false
    @Option(name: .long, help: ArgumentHelp("One more recipient; may be repeated.", valueName: "peer"), completion: .reachablePeer)
    var to: [String] = []
    @Flag(name: .long, help: "Send to every peer in a session, instead of PEER.")
    var all = false
    @Option(
        name: .long, help: ArgumentHelp("Send to all other members of a group, instead of PEER.", valueName: "group"), completion: .group)
    var group: String?
    @Option(name: .long, help: "reliable, or unreliable: at once or not at all, to peers that are listening.")
    var mode = Mode.reliable
    @Option(name: .long, help: ArgumentHelp("The content type; text/plain where it is text.", valueName: "mime"))
    var type: String?
    @Flag(name: .long, help: "Leave it with the daemon, which delivers it when the peer is back.")
    var queue = false
    @Option(name: .long, help: ArgumentHelp("How long to try, such as 30, 1.5, 30s or 2min; 10s unless given.", valueName: "time"))
    var timeout: Seconds?
    @OptionGroup var options: GlobalOptions

    /// The longest time for a message, in seconds.
    static let timeoutLimit: Double = 86_400

    mutating func validate() throws {
        if self.all || self.group != nil {
            if !self.to.isEmpty { throw ValidationError("give either --all, or --group, or the peers, not more than one of them") }
            if self.all, self.group != nil { throw ValidationError("give either --all or --group, not both") }
            guard self.group != "" else { throw ValidationError("the group's name is empty") }
            // No peer is named, so all the words are the message's.
            self.text = (self.peer.map { [$0] } ?? []) + self.text
            self.peer = nil
        } else if self.peer == nil {
            throw ValidationError("there is nobody to send to; give a PEER, --all or --group")
        }
        if self.queue, self.mode == .unreliable {
            throw ValidationError("an unreliable message does not wait; give either --mode unreliable or --queue")
        }
        if let timeout = self.timeout, timeout.value <= 0 || timeout.value > Self.timeoutLimit {
            throw ValidationError("--timeout is more than 0 and at most 86400 seconds")
        }
        if self.file != nil, !self.text.isEmpty { throw ValidationError("give either TEXT or --file, not both") }
        if self.lines {
            guard self.text.isEmpty, self.file == nil else {
                throw ValidationError("--lines sends standard input; give either that, or TEXT or --file")
            }
        } else if self.file == nil, self.text.isEmpty {
            throw ValidationError("there is nothing to send; give TEXT, -, --lines or --file FILE")
        }
        if self.text == [""] { throw ValidationError("the text is empty; an empty message can be sent with - or --file") }
        if let type = self.type, type.isEmpty || type.utf8.count > 255 {
            throw ValidationError("a content type is 1 to 255 bytes, such as text/plain")
        }
    }

    mutating func run() async throws {
        guard !self.lines else { return try await self.sendLines() }
        let options = self.options
        let body = try self.body()
        guard body.count <= Self.bodyLimit else {
            throw CommandFailure(
                .data, "a message is at most \(Self.bodyLimit) bytes, and this one is longer",
                hint: "send it as a file: earshot file send \((self.peer ?? "PEER").escapedForDisplay) PATH")
        }
        // A NUL is valid UTF-8, and in no text.
        let isText = !body.contains(0) && String(validating: body, as: UTF8.self) != nil
        // Chosen here, so that an interruption can name what it leaves with the daemon.
        let id = UUID().uuidString.lowercased()
        let request = ControlAPI.MessageRequest(
            to: self.recipients, body: body,
            contentType: self.type ?? (isText ? BodyCoding.textType : BodyCoding.binaryType),
            mode: self.mode == .reliable ? .reliable : .unreliable, messageID: id, queue: self.queue ? true : nil,
            timeoutSeconds: self.timeout?.value)
        let peer = self.to.isEmpty ? self.peer : nil
        let (recipients, group) = (self.peer.map { [$0] + self.to }, self.group)
        let (receipt, names) = try await options.withClient { client in
            let warning = ProtectionWarning(client: client)
            // A group says of itself whether its members may talk without TLS.
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

    /// The daemon has a message for good: an interruption ends the waiting, and says so.
    private static func send(
        _ request: ControlAPI.MessageRequest, _ id: String, _ client: ControlClient
    ) async throws -> ControlReply<ControlAPI.MessageReceipt> {
        guard request.mode == .reliable else { return try await client.send(request) }
        return try await Interrupts.takingBack {
            Standard.note("not waited for any more: message \(id) may still be delivered until its time is over")
        } _: {
            try await client.send(request)
        }
    }

    private func sendLines() async throws {
        let (recipients, group) = (self.peer.map { [$0] + self.to }, self.group)
        let upload = LineUpload(
            template: LineUpload.Template(
                recipients: recipients, group: self.group, contentType: self.type, isUnreliable: self.mode == .unreliable,
                isQueued: self.queue,
                timeout: self.timeout?.value), showsJSON: self.options.json)
        try await self.options.withClient { client in
            let warning = ProtectionWarning(client: client)
            if let recipients { await warning.tell(of: recipients) } else if group == nil { await warning.tellOfAll() }
            try await upload.run(client)
        }
    }

    private func body() throws -> [UInt8] {
        // One byte more than a message may have is enough to know that it has too many.
        if self.text == ["-"] { return try Self.read(nil) }
        if let file = self.file { return try Self.read(file) }
        return Array(self.text.joined(separator: " ").utf8)
    }

    private static func read(_ path: String?) throws -> [UInt8] {
        do {
            guard let path else { return try Standard.readAll(limit: Self.bodyLimit) }
            let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY)
            guard descriptor >= 0 else { throw FileError("open", path) }
            let file = OpenFile(descriptor: descriptor, subject: path)
            defer { withExtendedLifetime(file) {} }
            return try Standard.readAll(from: descriptor, subject: path, limit: Self.bodyLimit)
        } catch let error as FileError {
            throw CommandFailure(.noInput, error.description)
        }
    }

    private func judge(_ receipt: ControlAPI.MessageReceipt, _ names: [String: String]) throws {
        var outcomes = DeliveryOutcomes(isQueued: self.queue, isUnreliable: self.mode == .unreliable)
        outcomes.names = names
        outcomes.add(receipt.messageID, receipt.recipients)
        try outcomes.end()
    }
}
