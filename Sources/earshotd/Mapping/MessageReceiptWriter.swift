internal import Earshot
internal import EarshotClient
internal import EarshotWire
internal import NIOCore

/// Writes the receipts of messages without an encoder, in the form that the encoder would write, since they are many. Receipts with an
/// error are left to the encoder.
struct MessageReceiptWriter {
    /// The most peers whose written forms are kept.
    private static let peersKept = EarshotLimits.recipients
    /// The bytes reserved for the text around the recipients, and for each recipient.
    private static let length = 64
    private static let recipientLength = 128
    /// The written forms of recent peers.
    private var peers: [PeerID: String] = [:]

    /// Writes the receipt of one message, a `ControlAPI.MessageReceipt`.
    mutating func write(_ sent: SentMessage) throws -> ByteBuffer {
        guard Self.isPlain(sent) else {
            let recipients = sent.recipients.map(ControlAPI.Recipient.init)
            let receipt = ControlAPI.MessageReceipt(messageID: sent.id, recipients: recipients)
            return ByteBuffer(bytes: try ControlJSON.encode(receipt))
        }
        var buffer = ByteBuffer()
        buffer.reserveCapacity(minimumWritableBytes: Self.length + sent.recipients.count * Self.recipientLength)
        buffer.writeStaticString("{")
        self.writeFields(of: sent, into: &buffer)
        buffer.writeStaticString("}")
        return buffer
    }

    /// Whether no recipient has an error.
    static func isPlain(_ sent: SentMessage) -> Bool { sent.recipients.allSatisfy { $0.error == nil } }

    /// Writes the fields `message_id` and `recipients` of a receipt without errors.
    mutating func writeFields(of sent: SentMessage, into buffer: inout ByteBuffer) {
        buffer.writeStaticString("\"message_id\":\"")
        buffer.writeString(sent.id.description)
        buffer.writeStaticString("\",\"recipients\":[")
        for (index, recipient) in sent.recipients.enumerated() {
            buffer.writeStaticString(index == 0 ? "{\"peer_id\":\"" : ",{\"peer_id\":\"")
            buffer.writeString(self.text(recipient.peerID))
            buffer.writeStaticString("\",\"status\":\"")
            buffer.writeString(recipient.status.rawValue)
            buffer.writeStaticString("\"}")
        }
        buffer.writeStaticString("]")
    }

    private mutating func text(_ peer: PeerID) -> String {
        if let known = self.peers[peer] { return known }
        let text = peer.description
        if self.peers.count == Self.peersKept { self.peers = [:] }
        self.peers[peer] = text
        return text
    }
}
