internal import Earshot
internal import EarshotControl
internal import EarshotWire
internal import NIOCore

/// Writes what became of the lines of a request, a line each. What has no error, as almost all have, is written without an encoder, in the
/// form in which that writes it.
struct MessageLineWriter {
    /// Whether only lines with an error are written.
    let isMinimal: Bool
    /// The written form of the peers that were met.
    private var peers: [PeerID: String] = [:]

    init(isMinimal: Bool) { self.isMinimal = isMinimal }

    /// Appends one line.
    mutating func write(_ number: UInt64, _ outcome: Result<SentMessage, APIProblem>, into buffer: inout ByteBuffer) throws {
        switch outcome {
        case .success(let sent) where sent.recipients.allSatisfy { $0.error == nil }:
            if !self.isMinimal { self.write(number, sent, into: &buffer) }
        case .success(let sent):
            let recipients = sent.recipients.map(ControlAPI.Recipient.init)
            try self.encode(.init(line: number, messageID: sent.id.description, recipients: recipients), into: &buffer)
        case .failure(let problem):
            try self.encode(.init(line: number, error: .init(code: problem.code.rawValue, message: problem.detail)), into: &buffer)
        }
    }

    private func encode(_ result: ControlAPI.MessageLineResult, into buffer: inout ByteBuffer) throws {
        buffer.writeBytes(try ControlJSON.encode(result))
        buffer.writeStaticString("\n")
    }

    private mutating func write(_ number: UInt64, _ sent: SentMessage, into buffer: inout ByteBuffer) {
        buffer.writeStaticString("{\"line\":")
        buffer.writeString(String(number))
        buffer.writeStaticString(",\"message_id\":\"")
        buffer.writeString(sent.id.description)
        buffer.writeStaticString("\",\"recipients\":[")
        for (index, recipient) in sent.recipients.enumerated() {
            buffer.writeStaticString(index == 0 ? "{\"peer_id\":\"" : ",{\"peer_id\":\"")
            buffer.writeString(self.text(recipient.peerID))
            buffer.writeStaticString("\",\"status\":\"")
            buffer.writeString(recipient.status.rawValue)
            buffer.writeStaticString("\"}")
        }
        buffer.writeStaticString("]}\n")
    }

    private mutating func text(_ peer: PeerID) -> String {
        if let known = self.peers[peer] { return known }
        let text = peer.description
        self.peers[peer] = text
        return text
    }
}
