public import EarshotCoding
public import EarshotCore
public import EarshotWire
import NIOCore

/// Sending and receiving values of a program's own types as messages.
extension Node {
    /// Sends a value to a peer, by its id or a name, and returns when the peer has it on disk or delivery has failed.
    ///
    /// The rules for messages apply: ``send(to:contentType:body:mode:id:queue:timeout:inReplyTo:)``.
    /// - Throws: also `invalid-parameter` if the value cannot be encoded as JSON, such as a number that is not finite.
    @discardableResult
    public func send(
        _ value: some TypedMessage, to peer: any PeerReference, queue: Bool = false, timeout: Duration? = nil,
        inReplyTo: MessageID? = nil
    ) async throws(EarshotError) -> SentMessage {
        try await self.send(value, to: .peers([peer.description]), queue: queue, timeout: timeout, inReplyTo: inReplyTo)
    }

    /// Sends a value to several peers, to every connected one, or to a group, with the same rules as to one peer.
    @discardableResult
    public func send(
        _ value: some TypedMessage, to recipients: Message.Recipients, queue: Bool = false, timeout: Duration? = nil,
        inReplyTo: MessageID? = nil
    ) async throws(EarshotError) -> SentMessage {
        let body: [UInt8]
        do throws(JSONProblem) {
            body = try value.encoded()
        } catch {
            throw EarshotError(.invalidParameter, "the message cannot be encoded: \(error)")
        }
        return try await self.send(
            to: recipients, contentType: type(of: value).contentType, body: ByteBuffer(bytes: body), queue: queue, timeout: timeout,
            inReplyTo: inReplyTo)
    }

    /// Returns unread messages, oldest first, and then new ones as they arrive, as values of these types.
    ///
    /// ```swift
    /// for try await message in node.messages(of: Reading.self, Command.self) {
    ///     switch message.content {
    ///     case .value(let reading as Reading): record(reading, of: message.sender)
    ///     case .value(let command as Command): try await carryOut(command)
    ///     case .value, .bytes: print("\(message.id) is nothing for this program")
    ///     }
    /// }
    /// ```
    ///
    /// A message is marked read when the next one is requested. A program that crashes before that receives the message again. If it must
    /// not handle a message twice, it has to remember the ids of handled messages. Unreliable messages are included, once, while the
    /// program waits. The sequence ends with the task or with the node. It throws an `EarshotError`.
    ///
    /// The types must have different content types. If a peer or a group is given, only its messages are included.
    /// A name is resolved to an id at the first read.
    public nonisolated func messages<each Value: TypedMessage>(
        of types: repeat (each Value).Type, from peer: (any PeerReference)? = nil, in group: (any GroupReference)? = nil
    ) -> TypedMessages {
        TypedMessages(node: self, types: MessageTypes(repeat each types), peer: peer?.description, group: group?.description)
    }
}
