internal import Earshot
internal import EarshotClient
internal import EarshotWire
internal import NIOCore

/// Writes the results of a request's lines, one per line. Results without an error, which are almost all, are written without an encoder,
/// in the form that the encoder would write.
struct MessageLineWriter {
    /// Whether only lines with an error are written.
    let isMinimal: Bool
    private var receipts = MessageReceiptWriter()

    init(isMinimal: Bool) { self.isMinimal = isMinimal }

    /// Appends one line.
    mutating func write(_ number: UInt64, _ outcome: Result<SentMessage, APIProblem>, into buffer: inout ByteBuffer) throws {
        switch outcome {
        case .success(let sent) where MessageReceiptWriter.isPlain(sent):
            if !self.isMinimal { self.write(number, sent, into: &buffer) }
        case .success(let sent):
            let recipients = sent.recipients.map(ControlAPI.Recipient.init)
            try self.encode(.init(line: number, messageID: sent.id, recipients: recipients), into: &buffer)
        case .failure(let problem):
            try self.encode(.init(line: number, error: .init(code: Tolerant(problem.code), message: problem.detail)), into: &buffer)
        }
    }

    private func encode(_ result: ControlAPI.MessageLineResult, into buffer: inout ByteBuffer) throws {
        buffer.writeBytes(try ControlJSON.encode(result))
        buffer.writeStaticString("\n")
    }

    private mutating func write(_ number: UInt64, _ sent: SentMessage, into buffer: inout ByteBuffer) {
        buffer.writeStaticString("{\"line\":")
        buffer.writeString(String(number))
        buffer.writeStaticString(",")
        self.receipts.writeFields(of: sent, into: &buffer)
        buffer.writeStaticString("}\n")
    }
}
