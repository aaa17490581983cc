internal import Earshot
internal import EarshotClient
internal import EarshotWire
internal import HTTPTypes
internal import Logging
internal import NIOCore

/// Reads the bodies of requests on the message lane, and writes their answers as HTTP/1.1 does.
struct MessageLaneAnswers {
    /// Bytes of an answer to one recipient, with some to spare.
    private static let usualLength = 512

    private let requests: RequestCounts
    private let logger: Logger
    private var reader = MessageRequestReader()
    private var receipts = MessageReceiptWriter()

    init(requests: RequestCounts, logger: Logger) {
        self.requests = requests
        self.logger = logger
    }

    /// Returns the message that a request's body describes.
    mutating func draft(_ body: ByteBuffer) throws(APIProblem) -> MessageDraft { try self.reader.draft(body) }

    /// Returns the bytes of an answer, and counts the answer. A success is written without header fields that would exist only to be encoded.
    mutating func bytes(_ outcome: Result<SentMessage, APIProblem>, status: HTTPResponse.Status) -> ByteBuffer {
        var bytes = ByteBuffer()
        bytes.reserveCapacity(minimumWritableBytes: Self.usualLength)
        let body: ByteBuffer
        do {
            body = try self.receipts.write(try outcome.get())
            self.begin(&bytes, status)
            bytes.writeStaticString("\r\nContent-Type: application/json\r\nContent-Length: ")
            bytes.writeString(String(body.readableBytes))
        } catch {
            let head: HTTPResponse
            (head, body) = ProblemResponse.make(self.problem(for: error))
            self.begin(&bytes, head.status)
            for field in head.headerFields {
                bytes.writeStaticString("\r\n")
                bytes.writeString(field.name.rawName)
                bytes.writeStaticString(": ")
                bytes.writeString(field.value)
            }
        }
        bytes.writeStaticString("\r\n\r\n")
        bytes.writeImmutableBuffer(body)
        return bytes
    }

    private func begin(_ bytes: inout ByteBuffer, _ status: HTTPResponse.Status) {
        self.requests.count(status.code)
        bytes.writeStaticString("HTTP/1.1 ")
        bytes.writeString(status.description)
    }

    private func problem(for error: any Error) -> APIProblem {
        var problem = APIProblem(error)
        // The request has been read to its end.
        problem.closesConnection = false
        if problem.status == .internalServerError {
            self.logger.error("a request failed", metadata: ["method": "POST", "path": "/v1/messages", "error": "\(error)"])
        }
        return problem
    }
}
