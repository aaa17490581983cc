internal import Earshot
internal import EarshotClient
internal import EarshotWire
internal import HTTPTypes
internal import Logging
internal import NIOCore

/// What a request to send one small message asks for, and what it is answered.
struct SingleMessageAnswers {
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

    /// The message that a request's body describes.
    mutating func draft(_ body: ByteBuffer) throws(APIProblem) -> MessageDraft {
        let request: ControlAPI.MessageRequest
        do {
            request = try self.reader.read(body)
        } catch {
            throw APIProblem(.invalidParameter, error.description)
        }
        return try MessageDraft(request)
    }

    /// The answer, which is counted.
    mutating func answer(_ outcome: Result<SentMessage, APIProblem>, status: HTTPResponse.Status) -> (head: HTTPResponse, body: ByteBuffer)
    {
        let answer = self.response(to: outcome, status: status)
        self.requests.count(answer.head.status.code)
        return answer
    }

    /// The answer, which is counted, as HTTP/1.1 writes it: what most are told without headers that are made only to be written out.
    mutating func text(_ outcome: Result<SentMessage, APIProblem>, status: HTTPResponse.Status) -> ByteBuffer {
        var text = ByteBuffer()
        text.reserveCapacity(minimumWritableBytes: Self.usualLength)
        text.writeStaticString("HTTP/1.1 ")
        let body: ByteBuffer
        if case .success(let sent) = outcome, let receipt = try? self.receipts.write(sent) {
            body = receipt
            self.requests.count(status.code)
            text.writeString(status.description)
            text.writeStaticString("\r\nContent-Type: application/json\r\nContent-Length: ")
            text.writeString(String(body.readableBytes))
        } else {
            let head: HTTPResponse
            (head, body) = self.answer(outcome, status: status)
            text.writeString(head.status.description)
            for field in head.headerFields {
                text.writeStaticString("\r\n")
                text.writeString(field.name.rawName)
                text.writeStaticString(": ")
                text.writeString(field.value)
            }
        }
        text.writeStaticString("\r\n\r\n")
        text.writeImmutableBuffer(body)
        return text
    }

    private mutating func response(
        to outcome: Result<SentMessage, APIProblem>, status: HTTPResponse.Status
    ) -> (head: HTTPResponse, body: ByteBuffer) {
        do {
            let body = try self.receipts.write(try outcome.get())
            var head = HTTPResponse(status: status)
            head.headerFields[.contentType] = "application/json"
            head.headerFields[.contentLength] = String(body.readableBytes)
            return (head, body)
        } catch {
            var problem = APIProblem(error)
            // The request has been read to its end.
            problem.closesConnection = false
            if problem.status == .internalServerError {
                self.logger.error("a request failed", metadata: ["method": "POST", "path": "/v1/messages", "error": "\(error)"])
            }
            return ProblemResponse.make(problem)
        }
    }
}
