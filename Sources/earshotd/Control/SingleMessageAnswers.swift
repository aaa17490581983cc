internal import Earshot
internal import EarshotClient
internal import EarshotWire
internal import HTTPTypes
internal import Logging
internal import NIOCore

/// What a request to send one small message asks for, and what it is answered.
struct SingleMessageAnswers {
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
