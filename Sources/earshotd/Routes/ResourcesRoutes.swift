internal import Earshot
internal import EarshotControl
internal import EarshotSafety
internal import EarshotWire
internal import HTTPTypes
internal import Hummingbird
internal import HummingbirdCore
internal import NIOCore

/// `/v1/resources`: files on their way, and those that arrived.
struct ResourcesRoutes: Sendable {
    /// Bytes in one read of a content that is fetched.
    static let readSize = 256 * 1024

    let api: ControlAPIServices

    init(_ api: ControlAPIServices) { self.api = api }

    var routes: [Route] {
        [
            Route(.post, "/v1/resources") { request, context in
                RequestRules.isJSON(request.headers[.contentType])
                    ? try await self.sendPath(request, context) : try await self.sendBody(request, context)
            },
            Route(.get, "/v1/resources") { _, _ in
                try .json(ControlAPI.ResourceList(resources: await self.api.node.resources().map(ControlAPI.Resource.init)))
            },
            Route(.get, "/v1/resources/:id") { _, context in
                let id: ResourceID = try context.identifier("a resource")
                return try .json(ControlAPI.Resource(try await self.api.node.resource(id)))
            },
            Route(.delete, "/v1/resources/:id") { _, context in
                let id: ResourceID = try context.identifier("a resource")
                guard let cancelled = try await self.api.node.removeResource(id) else { return .noContent }
                return try .json(ControlAPI.Resource(cancelled))
            },
            Route(.post, "/v1/resources/:id/response", self.respond),
            Route(.get, "/v1/resources/:id/content", self.content),
            Route(.delete, "/v1/resources/:id/content") { _, context in
                let id: ResourceID = try context.identifier("a resource")
                try await self.api.node.dropContent(id)
                return .noContent
            },
        ]
    }

    private func respond(_ request: Request, _ context: APIContext) async throws -> Response {
        let id: ResourceID = try context.identifier("a resource")
        let decision: Resource.Decision
        switch try await request.json(ControlAPI.ResourceResponse.self).decision {
        case .known(.accept): decision = .accept
        // An invitation's word for it will do too.
        case .known(.refuse), .known(.reject): decision = .refuse
        case .unknown(let word):
            throw APIProblem(.invalidParameter, "`decision` is accept or refuse, not \(word.escapedForDisplay)")
        }
        return try .json(ControlAPI.Resource(try await self.api.node.respond(to: id, decision)))
    }

    /// The daemon opens the file itself, with its own rights: only for a caller that has the same.
    private func sendPath(_ request: Request, _ context: APIContext) async throws -> Response {
        guard self.api.policy.mayNamePaths(context.caller) else {
            throw APIProblem(
                .forbidden, "only the daemon's own user may name a path; send the file as the request's body", closesConnection: true)
        }
        let body = try await request.json(ControlAPI.ResourceRequest.self)
        guard !body.to.isEmpty, !body.to.contains("") else {
            throw APIProblem(.invalidParameter, "`to` names no peer; give names, ids or their first 8 characters")
        }
        guard body.path.hasPrefix("/"), !body.path.utf8.contains(0) else {
            throw APIProblem(.invalidParameter, "`path` is an absolute path")
        }
        let digest = try Self.digest(body.digest?.rawValue)
        let resources = try await self.api.node.sendResource(to: body.to, path: body.path, digest: digest, queue: body.queue == true)
        return try .json(ControlAPI.ResourceList(resources: resources.map(ControlAPI.Resource.init)), status: .accepted)
    }

    private static func digest(_ word: String?) throws -> Resource.Digest {
        guard let word else { return .xxh3 }
        guard let digest = Resource.Digest(rawValue: word) else {
            throw APIProblem(.invalidParameter, "`digest` is xxh3 or sha256, not \(word.escapedForDisplay)")
        }
        return digest
    }

    /// The body is the file: it goes out as it comes in, at the receiver's pace; or it is kept first, with `queue`.
    private func sendBody(_ request: Request, _ context: APIContext) async throws -> Response {
        do {
            let query = try Query(request)
            let peers = query.all("to")
            guard !peers.isEmpty else { throw APIProblem(.invalidParameter, "'to' is missing in the query; name the peer") }
            guard let name = try query.text("name") else {
                throw APIProblem(.invalidParameter, "'name' is missing in the query; name the file")
            }
            let kind = try query.text("kind") ?? Resource.Kind.file.rawValue
            guard let kind = Resource.Kind(rawValue: kind) else {
                throw APIProblem(.invalidParameter, "'kind' in the query is file or directory, not \(kind.escapedForDisplay)")
            }
            let queue = try query.flag("queue")
            let digest = try Self.digest(try query.text("digest"))
            let length = request.headers[.contentLength].flatMap { UInt64($0) }
            guard let size = try query.number("size", 0...WireLimits.resourceSize) ?? length else {
                throw APIProblem(
                    .invalidParameter, "the size is unknown; send a Content-Length, or 'size' in the query", status: .lengthRequired)
            }
            guard length == nil || length == size else {
                throw APIProblem(.invalidParameter, "'size' in the query and the Content-Length differ; send one of them")
            }
            let resources = try await ClientPresence.required(on: context.channel) {
                let node = self.api.node
                return queue
                    ? try await node.queueResource(to: peers, name: name, kind: kind, size: size, digest: digest, body: request.body)
                    : try await node.sendResource(to: peers, name: name, kind: kind, size: size, digest: digest, body: request.body)
            }
            return try .json(
                ControlAPI.ResourceList(resources: resources.map(ControlAPI.Resource.init)), status: queue ? .accepted : .ok)
        } catch {
            // Some of the body may be unread, and be very long.
            var problem = APIProblem(error)
            problem.closesConnection = true
            throw problem
        }
    }

    private func content(_ request: Request, _ context: APIContext) async throws -> Response {
        let id: ResourceID = try context.identifier("a resource")
        let content = try await self.api.node.resourceContent(id)
        if let archive = content.archive(), !TreeFormat.isWanted(by: request.headers) { return TreeFormat.response(archive) }
        let tag = content.digest.map { "\"\($0)\"" }
        let range = ByteRange.requested(in: request.headers, of: content.size, tag: tag)
        var headers: HTTPFields = [.acceptRanges: "bytes"]
        headers[.contentType] = content.kind == .directory ? ControlAPI.treeMediaType : "application/octet-stream"
        headers[.eTag] = tag
        let bytes: Range<UInt64>
        switch range {
        case .whole: bytes = 0..<content.size
        case .part(let part):
            bytes = part
            headers[.contentRange] = "bytes \(part.lowerBound)-\(part.upperBound - 1)/\(content.size)"
        case .unsatisfiable:
            throw APIProblem(
                .invalidParameter, "the content of \(id) has \(content.size) bytes; ask for a range within them",
                status: .rangeNotSatisfiable, fields: [.contentRange: "bytes */\(content.size)"])
        }
        guard let length = Int(exactly: bytes.upperBound - bytes.lowerBound) else {
            throw APIProblem(.tooLarge, "the content is too large for this machine")
        }
        let body = ResponseBody(contentLength: length) { writer in
            var offset = bytes.lowerBound
            while offset < bytes.upperBound {
                let count = Int(min(UInt64(Self.readSize), bytes.upperBound - offset))
                let piece = try await content.read(at: offset, count: count)
                // It was cut short under us: the length that was promised cannot be kept, and the closed connection says so.
                guard piece.readableBytes > 0 else { throw EarshotError(.storage, "the content of \(id) ends at \(offset) bytes") }
                offset += UInt64(piece.readableBytes)
                try await writer.write(piece)
            }
            try await writer.finish(nil)
        }
        return Response(status: range == .whole ? .ok : .partialContent, headers: headers, body: body)
    }
}
