internal import Earshot
internal import EarshotCoding
internal import EarshotClient
internal import HTTPTypes
internal import Hummingbird
internal import HummingbirdCore
internal import NIOCore

extension Request {
    /// The largest JSON body, in bytes: a message of 1 MiB of text, each of its bytes escaped (`\u0001`), with its other fields.
    static let jsonLimit = 6 * 1024 * 1024 + 64 * 1024

    /// Decodes the body.
    /// - Throws: The errors of `jsonBody`, and 400 with the name of an invalid field.
    func json<Value: Decodable>(_ type: Value.Type) async throws -> Value {
        let body = try await self.jsonBody()
        do throws(JSONProblem) {
            return try ControlJSON.decode(type, from: body.readableBytesView)
        } catch {
            throw APIProblem(.invalidParameter, error.description)
        }
    }

    /// Reads the whole body, whose content type must be JSON.
    /// - Throws: 415 for another content type, 413 for a body that is too large.
    func jsonBody() async throws -> ByteBuffer {
        guard RequestRules.isJSON(self.headers[.contentType]) else {
            throw APIProblem(
                .invalidParameter, "the body must be JSON; send it with Content-Type: application/json", status: .unsupportedMediaType,
                closesConnection: true)
        }
        if let length = self.headers[.contentLength].flatMap({ Int($0) }), length > Self.jsonLimit {
            throw NIOTooManyBytesError(maxBytes: Self.jsonLimit)
        }
        return try await self.body.collect(upTo: Self.jsonLimit)
    }
}

extension Response {
    /// Returns an answer with a value as its JSON body.
    static func json(_ value: some Encodable, status: HTTPResponse.Status = .ok) throws -> Response {
        let bytes = try ControlJSON.encode(value)
        return Response(status: status, headers: [.contentType: "application/json"], body: .init(byteBuffer: ByteBuffer(bytes: bytes)))
    }

    /// An answer without a body.
    static var noContent: Response { Response(status: .noContent) }
}
