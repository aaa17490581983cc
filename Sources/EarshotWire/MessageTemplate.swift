package import NIOCore

/// Encodes messages that differ only by their id and body. The common part is encoded once, and copied.
package struct MessageTemplate: Sendable {
    /// The content type of all messages.
    package let contentType: String
    /// The whole frame of an empty message with an id of zeros.
    private let empty: ByteBuffer

    /// Creates a template for messages like this one.
    /// - Throws: `malformed` for a field over its limit.
    package init(_ message: MessageFrame) throws(WireError) {
        var message = message
        message.id = MessageID(high: 0, low: 0)
        message.body = ByteBuffer()
        var buffer = ByteBuffer()
        try FrameEncoder.encode(.message(message), into: &buffer)
        self.contentType = message.contentType
        self.empty = buffer
    }

    /// Appends the whole frame of a message, header included; its body is copied, and has at most `WireLimits.messageBody` bytes.
    package func encode(_ id: MessageID, _ body: ByteBuffer, into buffer: inout ByteBuffer) {
        let start = buffer.writerIndex
        let length = self.empty.readableBytes
        buffer.writeImmutableBuffer(self.empty)
        buffer.setInteger(UInt32(clamping: length - WireLimits.frameHeaderLength + body.readableBytes), at: start)
        // The id follows the session.
        buffer.setInteger(id.high, at: start + WireLimits.frameHeaderLength + 16)
        buffer.setInteger(id.low, at: start + WireLimits.frameHeaderLength + 24)
        buffer.setInteger(UInt32(clamping: body.readableBytes), at: start + length - 4)
        buffer.writeImmutableBuffer(body)
    }
}
