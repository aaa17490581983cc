public import EarshotCoding
public import EarshotWire

/// Messages whose bodies are values of Swift types.
extension ControlClient {
    /// Sends a value to a peer, by its id or a name. Returns when the peer has stored the message or the delivery has failed; the
    /// receipt has the status. With `queue`, returns when this machine's daemon has stored the message, which is then queued for a peer
    /// that is away.
    ///
    /// The message expires after the timeout, which is more than 0 and at most a day. The default is 10 s, or with `queue` the daemon's
    /// setting. `inReplyTo` names the message to which this one replies. Throws ``ControlError/malformed(_:)`` if the value cannot be encoded
    /// as JSON; otherwise the errors of ``send(_:)``.
    @discardableResult
    public func send(
        _ value: some TypedMessage, to peer: any PeerReference, queue: Bool = false, timeout: Duration? = nil,
        inReplyTo: MessageID? = nil
    ) async throws(ControlError) -> ControlAPI.MessageReceipt {
        try await self.send(value, to: .peers([peer.description]), queue: queue, timeout: timeout, inReplyTo: inReplyTo)
    }

    /// Sends a value to several peers, to every connected peer, or to a group.
    @discardableResult
    public func send(
        _ value: some TypedMessage, to recipients: ControlAPI.MessageRequest.Recipients, queue: Bool = false, timeout: Duration? = nil,
        inReplyTo: MessageID? = nil
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
                timeout: timeout, inReplyTo: inReplyTo)
        ).value
    }

    /// Returns unread messages, oldest first, and then new ones, as values of these types.
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
    /// A message is marked read when the next one is requested. If the program dies meanwhile, it receives the message again; a program
    /// that must not act twice remembers the ids of the messages that it has handled. Unreliable messages are also returned, once, while
    /// the program waits. The sequence ends only with the task. If the daemon goes away, the sequence throws a ``ControlError``; a new
    /// sequence continues where the old one ended.
    ///
    /// The types must have different content types. With a peer or a group, only its messages are returned. The
    /// name is resolved to an id once, at the start.
    public func messages<each Value: TypedMessage>(
        of types: repeat (each Value).Type, from peer: (any PeerReference)? = nil, in group: (any GroupReference)? = nil
    ) -> TypedMessages {
        TypedMessages(client: self, types: MessageTypes(repeat each types), peer: peer?.description, group: group?.description)
    }
}
