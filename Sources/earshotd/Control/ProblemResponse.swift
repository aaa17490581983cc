internal import Earshot
internal import EarshotClient
internal import EarshotWire
internal import HTTPTypes
internal import NIOCore

/// The encoding of problems: `application/problem+json` (RFC 9457).
enum ProblemResponse {
    /// Returns the problem as the API's model.
    static func model(_ problem: APIProblem) -> ControlAPI.Problem {
        let candidates = problem.candidates.map { ControlAPI.Candidate(id: $0.id, name: $0.name) }
        return ControlAPI.Problem(
            type: "about:blank", title: problem.status.reasonPhrase, status: problem.status.code, detail: problem.detail,
            code: Tolerant(problem.code), candidates: candidates.isEmpty ? nil : candidates,
            remedy: problem.remedy.map { Tolerant($0) })
    }

    /// Returns the head, which includes the length, and the body.
    static func make(_ problem: APIProblem) -> (head: HTTPResponse, body: ByteBuffer) {
        // Encoding strings and numbers does not fail. If it ever did, the answer would still have its status.
        let body = ByteBuffer(bytes: (try? ControlJSON.encode(self.model(problem))) ?? [])
        var head = HTTPResponse(status: problem.status)
        head.headerFields[.contentType] = ControlAPI.Problem.mediaType
        head.headerFields[.contentLength] = String(body.readableBytes)
        head.headerFields.append(contentsOf: problem.fields)
        if problem.closesConnection { head.headerFields[.connection] = "close" }
        return (head, body)
    }
}
