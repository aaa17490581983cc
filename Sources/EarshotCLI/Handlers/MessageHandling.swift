import EarshotClient
import EarshotSafety
import FoundationEssentials

extension ControlAPI.Message: HandledItem {
    var arrival: Date { self.receivedAt ?? self.sentAt ?? .distantPast }
    var weight: Int { self.size + self.contentType.utf8.count }
}

/// Runs a command for each unread message, and marks the message read once the command has exited with 0. A lane is a sender.
struct MessageHandling: HandlerSource {
    let client: ControlClient
    let command: HandlerCommand
    /// The senders whose messages are handled; empty for all.
    let senders: [PeerID]
    let group: GroupID?
    let type: ContentType?
    /// Whether the command reads the message as JSON, with all its fields.
    let asJSON: Bool
    /// Whether the sender of a message gets what the command prints. Messages that are replies themselves are then not handled: otherwise two
    /// handlers would reply to each other without end, and take the replies from `earshot ask`.
    let replies: Bool
    private let trusts: PeerTrusts

    init(
        client: ControlClient, command: HandlerCommand, senders: [PeerID], group: GroupID?, type: ContentType?, asJSON: Bool, replies: Bool
    ) {
        (self.client, self.command, self.trusts) = (client, command, PeerTrusts(client))
        (self.senders, self.group, self.type, self.asJSON, self.replies) = (senders, group, type, asJSON, replies)
    }

    func watch(_ tell: @Sendable (PeerID) -> Void) async throws {
        // Subscribes before the first look, so that no message is missed in between.
        let events = try await self.client.watch()
        try await self.look(tell)
        for try await event in events {
            self.trusts.note(event)
            if let message = event.message {
                if message.mode != .unreliable, self.isWanted(message) { tell(message.sender.id) }
            } else if event.value.type == .messageReceived || event.value.type == .gap || !event.unreadable.isEmpty {
                try await self.look(tell)
            }
        }
    }

    /// Reports all wanted senders of unread messages.
    private func look(_ tell: (PeerID) -> Void) async throws {
        guard self.senders.isEmpty else { return self.senders.forEach(tell) }
        var place: String?
        repeat {
            let page = try await whileAway { [place] in
                try await self.client.messages(in: self.group, after: place, limit: ReceiveCommand.page)
            }
            Set(page.messages.map(\.sender.id)).forEach(tell)
            place = page.next
        } while place != nil
    }

    private func isWanted(_ message: ControlAPI.Message) -> Bool {
        (self.senders.isEmpty || self.senders.contains(message.sender.id)) && (self.group == nil || self.group == message.group?.id)
            && self.type?.includes(message.contentType) ?? true && (!self.replies || message.inReplyTo == nil)
    }

    func fetch(_ lane: PeerID, after place: String?) async throws -> (items: [ControlAPI.Message], next: String?) {
        let page = try await whileAway {
            try await self.client.messages(
                from: lane, in: self.group, after: place, limit: HandlerQueue<PeerID, ControlAPI.Message>.pageLimit)
        }
        return (page.messages.filter(self.isWanted), page.next)
    }

    func handle(_ message: ControlAPI.Message) async throws -> HandlerOutcome {
        let subject = "message \(Words.short(message.id)) from \(message.sender.name.escapedForDisplay)"
        let trust = try await self.trusts.trust(in: message.sender.id)
        let input = self.asJSON ? Standard.line(json: try ControlJSON.encode(message)) : message.body
        let variables = HandlerVariables(message, trust: trust, socket: self.client.socketPath)
        do {
            let output = self.replies ? try CommandOutput() : nil
            let ending = try await self.command.run(input: input, output: output, variables)
            var printed: [UInt8] = []
            if let output {
                guard let bytes = await output.bytes() else {
                    return .failed("\(self.command.name) printed more than the limit of \(CommandOutput.limit) bytes for \(subject)")
                }
                printed = bytes
            }
            guard ending == .exited(0) else { return .failed("\(self.command.name) \(ending.words) for \(subject)") }
            if !printed.isEmpty, let reason = try await self.reply(printed, to: message) {
                return .failed("cannot send the reply of \(self.command.name) for \(subject): \(reason)")
            }
        } catch let error as FileError {
            return .failed("\(error) for \(subject)")
        }
        try await untilNoted(subject) { try await self.client.markRead([.init(id: message.id, from: message.sender.id)]) }
        return .handled
    }

    /// Queues a reply to the sender of a message. Returns the reason, escaped, if the daemon does not accept it.
    private func reply(_ body: [UInt8], to message: ControlAPI.Message) async throws -> String? {
        // The same id each time: if the message is handled again, the sender gets only one reply.
        let request = ControlAPI.MessageRequest(
            to: .peers([message.sender.id]), body: body, contentType: MessageBody.contentType(of: body),
            messageID: .reply(to: message.id, of: message.sender.id), queue: true, inReplyTo: message.id)
        do {
            let receipt = try await whileAway { try await self.client.send(request) }
            let failed = receipt.value.recipients.first { $0.status == .failed }
            return failed.map { $0.error?.message.escapedForDisplay ?? $0.status.rawValue.escapedForDisplay }
        } catch ControlError.problem(let problem) where problem.code == .conflict {
            // The daemon has accepted another output of an earlier run, which stands.
            return nil
        } catch let error as ControlError {
            try Task.checkCancellation()
            return CommandFailure(error).message ?? error.description.escapedForDisplay
        }
    }

    func terminate() { self.command.terminate() }

    func leave() { self.command.leave() }
}
