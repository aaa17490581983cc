public import EarshotCoding
public import EarshotCore
import NIOCore

/// Values of a program's own types, as messages.
extension Node {
    /// Sends a value to a peer, in any form of naming it, and returns when the peer has it on disk, or will not get it.
    ///
    /// What holds of messages holds of it: ``send(to:contentType:body:mode:id:queue:timeout:)``.
    /// - Throws: `invalid-parameter` too where the value cannot be JSON, such as a number that is not finite.
    @discardableResult
    public func send(
        _ value: some TypedMessage, to peer: String, queue: Bool = false, timeout: Duration? = nil
    ) async throws(EarshotError) -> SentMessage {
        try await self.send(value, to: .peers([peer]), queue: queue, timeout: timeout)
    }

    /// Sends a value to several peers, to every connected one, or to a group, as to one.
    @discardableResult
    public func send(
        _ value: some TypedMessage, to recipients: Message.Recipients, queue: Bool = false, timeout: Duration? = nil
    ) async throws(EarshotError) -> SentMessage {
        let body: [UInt8]
        do throws(JSONProblem) {
            body = try value.encoded()
        } catch {
            throw EarshotError(.invalidParameter, "the message cannot be encoded: \(error)")
        }
        return try await self.send(
            to: recipients, contentType: type(of: value).contentType, body: ByteBuffer(bytes: body), queue: queue, timeout: timeout)
    }

    /// Unread messages, the oldest first, and then those that come, as values of these types.
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
    /// A message is marked read when the next one is asked for: a program that dies meanwhile gets it again, and one that must not do a thing twice
    /// remembers the ids of those that it has dealt with. Unreliable messages come as well, once, while the program waits. The sequence ends with
    /// the task, or with the node; it throws an `EarshotError`.
    ///
    /// No two of the types have the same content type. Where a peer or a group is given, in any form of naming it, only messages of that come; it
    /// goes by its id from the first look on.
    public nonisolated func messages<each Value: TypedMessage>(
        of types: repeat (each Value).Type, from peer: String? = nil, in group: String? = nil
    ) -> TypedMessages {
        TypedMessages(node: self, types: MessageTypes(repeat each types), peer: peer, group: group)
    }
}
