public import EarshotCoding

/// Messages that are values of types of their own.
extension ControlClient {
    /// Sends a value to a peer, in any form of naming it, and returns when the peer has it on disk, or will not get it: what became of it stands in
    /// the receipt. With `queue` it returns when this machine's daemon has it on disk, where it waits for a peer that is away.
    ///
    /// It is given up after so many seconds, at most 86,400; where none are given, after 10, and with `queue` after what the daemon is set to.
    /// Throws ``ControlError/malformed(_:)`` where the value cannot be JSON; what ``send(_:)`` throws otherwise.
    @discardableResult
    public func send(
        _ value: some TypedMessage, to peer: String, queue: Bool = false, timeoutSeconds: Double? = nil
    ) async throws(ControlError) -> ControlAPI.MessageReceipt {
        try await self.send(value, to: .peers([peer]), queue: queue, timeoutSeconds: timeoutSeconds)
    }

    /// Sends a value to several peers, to every connected one, or to a group, as to one.
    @discardableResult
    public func send(
        _ value: some TypedMessage, to recipients: ControlAPI.MessageRequest.Recipients, queue: Bool = false, timeoutSeconds: Double? = nil
    ) async throws(ControlError) -> ControlAPI.MessageReceipt {
        let body: [UInt8]
        do throws(JSONProblem) {
            body = try value.encoded()
        } catch {
            throw .malformed("the message: \(error)")
        }
        return try await self.send(
            ControlAPI.MessageRequest(
                to: recipients, body: body, contentType: type(of: value).contentType, queue: queue ? true : nil,
                timeoutSeconds: timeoutSeconds)
        ).value
    }

    /// Unread messages, the oldest first, and then those that come, as values of these types.
    ///
    /// ```swift
    /// for try await message in client.messages(of: Reading.self, Command.self) {
    ///     switch message.content {
    ///     case .value(let reading as Reading): record(reading, of: message.sender)
    ///     case .value(let command as Command): try await carryOut(command)
    ///     case .value, .bytes: print("\(message.id) is nothing for this program")
    ///     }
    /// }
    /// ```
    ///
    /// A message is marked read when the next one is asked for: a program that dies meanwhile gets it again, and one that must not do a thing twice
    /// remembers the ids of those that it has dealt with. Unreliable messages come as well, once, while the program waits. The sequence has no end
    /// but the task's; it throws a ``ControlError`` where the daemon goes away, and a new one goes on where that ended.
    ///
    /// No two of the types have the same content type. Where a peer or a group is given, in any form of naming it, only messages of that come; it
    /// goes by its id from the first look on.
    public func messages<each Value: TypedMessage>(
        of types: repeat (each Value).Type, from peer: String? = nil, in group: String? = nil
    ) -> TypedMessages {
        TypedMessages(client: self, types: MessageTypes(repeat each types), peer: peer, group: group)
    }
}
