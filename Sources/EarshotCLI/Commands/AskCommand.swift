import ArgumentParser
import EarshotClient
import EarshotSafety

struct AskCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ask", abstract: "Send a message to a peer, and print its reply.",
        usage: """
            earshot ask PEER TEXT... [--type MIME] [--timeout TIME]
            earshot ask PEER - < message
            """,
        discussion: """
            Waits for the first message of the peer that replies to this one, prints its text and marks it read. On a terminal, control \
            characters are escaped; elsewhere, the bytes are printed as they are. The peer replies with earshot on message --reply, or with \
            earshot send --in-reply-to.
            """)

    /// The time to wait for the reply, unless the user gives one.
    static let usualTimeout: Duration = .seconds(60)

    @Argument(help: .peer, completion: .reachablePeer)
    var peer: String
    @Argument(help: ArgumentHelp("Text of the message, or - for standard input.", valueName: "text"))
    var text: [String]
    @Option(name: .long, help: ArgumentHelp("Content type; default: text/plain for text.", valueName: "mime"))
    var type: String?
    @Option(
        name: .long,
        help: ArgumentHelp(
            "Maximum time to wait for the reply, in seconds or with a unit, such as 30, 1.5s or 2min; default: 1min.", valueName: "time"))
    var timeout: Seconds?
    @OptionGroup var options: GlobalOptions

    mutating func validate() throws {
        guard !self.peer.isEmpty else { throw ValidationError("the peer's name is empty") }
        try MessageBody.check(text: self.text, type: self.type, timeout: self.timeout)
    }

    mutating func run() async throws {
        let (options, name, timeout) = (self.options, self.peer, self.timeout?.duration ?? Self.usualTimeout)
        let body = try MessageBody.read(self.text, peer: name)
        let question = MessageID.random()
        let type = self.type ?? MessageBody.contentType(of: body)
        try await options.withClient { client in
            do {
                let peer = try await client.peer(name).value
                await ProtectionWarning(client: client).tell(of: peer)
                // Subscribes before the message is sent, so that no reply is missed in between.
                let events = try await client.watch()
                let request = ControlAPI.MessageRequest(
                    to: .peers([peer.id]), body: body, contentType: type, messageID: question, timeout: timeout)
                let reply = try await PendingQuestion(client: client, peer: peer, request: request, id: question, timeout: timeout)
                    .reply(among: events)
                try Standard.write(try Self.bytes(reply, asJSON: options.json))
                // An unreliable message is not stored.
                if reply.mode != .unreliable { _ = try await client.markRead([.init(id: reply.id, from: peer.id)]) }
            } catch let error as ControlError {
                throw CommandFailure(error, peer: name)
            }
        }
    }

    private static func bytes(_ reply: ControlAPI.Message, asJSON: Bool) throws -> [UInt8] {
        if asJSON { return Standard.line(json: try ControlJSON.encode(reply)) }
        guard Terminal.isOutput else { return reply.body }
        return Array(Render.body(of: reply).utf8)
    }
}

/// A message that was sent, or is being sent, and whose reply is awaited.
struct PendingQuestion: Sendable {
    let client: ControlClient
    let peer: ControlAPI.Peer
    let request: ControlAPI.MessageRequest
    let id: MessageID
    let timeout: Duration

    private enum Step: Sendable {
        case sent(ControlAPI.MessageReceipt)
        case replied(ControlAPI.Message)
        case timedOut
    }

    /// Sends the message, and returns the first reply.
    /// - Throws: a failure if the message is not delivered, or if no reply arrives in time.
    func reply(among events: ControlEvents) async throws -> ControlAPI.Message {
        let deadline = ContinuousClock.now + self.timeout
        return try await withThrowingTaskGroup(of: Step.self) { group in
            group.addTask { .sent(try await SendCommand.send(self.request, self.id, self.client).value) }
            group.addTask { .replied(try await self.find(in: events)) }
            group.addTask {
                try await Task.sleep(until: deadline, clock: .continuous)
                return .timedOut
            }
            defer { group.cancelAll() }
            var (isDelivered, isLate) = (false, false)
            while let step = try await group.next() {
                switch step {
                case .replied(let reply): return reply
                case .sent(let receipt):
                    try await self.judge(receipt)
                    isDelivered = true
                case .timedOut: isLate = true
                }
                // The time for the delivery is the same: its outcome is known soon, and says more.
                if isDelivered, isLate { break }
            }
            throw CommandFailure(
                .temporary, "no reply from \(self.peer.name.escapedForDisplay) in \(Words.seconds(self.timeout / .seconds(1)))",
                hint: "the message was delivered; check whether a command replies there: earshot on message --reply -- COMMAND")
        }
    }

    private func judge(_ receipt: ControlAPI.MessageReceipt) async throws {
        var outcomes = DeliveryOutcomes(isQueued: false, isUnreliable: false)
        outcomes.names = await DeliveryOutcomes.names(for: receipt.recipients, self.client)
        outcomes.add(receipt.messageID, receipt.recipients)
        try outcomes.end()
    }

    /// Returns the first reply among the events, or in the inbox if events were missed.
    private func find(in events: ControlEvents) async throws -> ControlAPI.Message {
        for try await event in events {
            if let message = event.message {
                if self.isReply(message) { return message }
            } else if event.value.type == .messageReceived || event.value.type == .gap || !event.unreadable.isEmpty {
                if let message = try await self.findStored() { return message }
            }
        }
        throw CancellationError()
    }

    /// Another program may have read the reply.
    private func findStored() async throws -> ControlAPI.Message? {
        var place: String?
        repeat {
            let page = try await whileAway { [place] in
                try await self.client.messages(all: true, from: self.peer.id, after: place, limit: ReceiveCommand.page)
            }
            if let reply = page.messages.first(where: self.isReply) { return reply }
            place = page.next
        } while place != nil
        return nil
    }

    private func isReply(_ message: ControlAPI.Message) -> Bool {
        message.sender.id == self.peer.id && message.inReplyTo == self.id
    }
}
