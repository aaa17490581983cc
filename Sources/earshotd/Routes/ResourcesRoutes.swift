internal import Earshot
internal import EarshotClient
internal import EarshotSafety
internal import EarshotWire
internal import HTTPTypes
internal import Hummingbird
internal import HummingbirdCore
internal import NIOCore

/// `/v1/resources`: sent and received files, and transfers in progress.
struct ResourcesRoutes: Sendable {
    /// The size of one read of a resource's content, in bytes.
    static let readSize = 256 * 1024

    let api: ControlAPIServices

    init(_ api: ControlAPIServices) { self.api = api }

    var routes: [Route] {
        [
            Route(.post, "/v1/resources") { request, context in
                if RequestRules.isJSON(request.headers[.contentType]) { return try await self.sendPath(request, context) }
                if DescriptorConnection.isWanted(by: request.head) { try await self.sendFile(request, context) }
                return try await self.sendBody(request, context)
            },
            Route(.get, "/v1/resources") { request, _ in
                try Self.list(try await self.api.node.resources(inGroup: try Query(request).text("group")))
            },
            Route(.get, "/v1/resources/:id") { _, context in
                let id: ResourceID = try context.identifier("a resource")
                // A resource that was sent to a group has a share id.
                let share = await self.api.node.resources(of: ShareID(id))
                guard share.isEmpty else { return try Self.list(share) }
                return try .json(ControlAPI.Resource(try await self.api.node.resource(id)))
            },
            Route(.delete, "/v1/resources/:id") { _, context in
                let id: ResourceID = try context.identifier("a resource")
                guard await self.api.node.resources(of: ShareID(id)).isEmpty else {
                    let cancelled = try await self.api.node.removeShare(ShareID(id))
                    return cancelled.isEmpty ? .noContent : try Self.list(cancelled)
                }
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

    private static func list(_ resources: [Resource], status: HTTPResponse.Status = .ok) throws -> Response {
        try .json(ControlAPI.ResourceList(resources: resources.map(ControlAPI.Resource.init)), status: status)
    }

    private func respond(_ request: Request, _ context: APIContext) async throws -> Response {
        let id: ResourceID = try context.identifier("a resource")
        let decision: Resource.Decision
        switch try await request.json(ControlAPI.ResourceResponse.self).decision {
        case .known(.accept): decision = .accept
        // Also accepts the word for an invitation.
        case .known(.refuse), .known(.reject): decision = .refuse
        case .unknown(let word):
            throw APIProblem(.invalidParameter, "`decision` is accept or refuse, not \(word.escapedForDisplay)")
        }
        return try .json(ControlAPI.Resource(try await self.api.node.respond(to: id, decision)))
    }

    /// Sends a file that the daemon opens with its own permissions: only for a caller with the same permissions.
    private func sendPath(_ request: Request, _ context: APIContext) async throws -> Response {
        guard self.api.policy.mayNamePaths(context.caller) else {
            throw APIProblem(
                .forbidden, "only the daemon's own user may name a path; send the file as the request's body", closesConnection: true)
        }
        let body = try await request.json(ControlAPI.ResourceRequest.self)
        let recipients = try Recipients(to: body.to, group: body.group, otherwise: .namesNobody("to"))
        guard body.path.hasPrefix("/"), !body.path.utf8.contains(0) else {
            throw APIProblem(.invalidParameter, "`path` is an absolute path")
        }
        let digest = try Self.digest(body.digest?.rawValue)
        let (node, queue, limit) = (self.api.node, body.queue == true, body.limit)
        guard (body.device == nil) == (body.inode == nil) else {
            throw APIProblem(.invalidParameter, "`device` and `inode` name a file together; give both or neither")
        }
        let pin = try DevicePIN.checked(body.pin)
        let file = body.device.flatMap { device in body.inode.map { FileStatus.Identity(device: device, inode: $0) } }
        let resources: [Resource] =
            switch recipients {
            case .peers(let peers):
                try await node.sendResource(
                    to: peers, path: body.path, of: file, name: body.name, digest: digest, limit: limit, queue: queue, pin: pin)
            case .group(let group):
                try await node.sendResource(
                    toGroup: group, path: body.path, of: file, name: body.name, digest: digest, limit: limit, queue: queue)
            }
        return try Self.list(resources, status: .accepted)
    }

    /// The recipients of a resource.
    private enum Recipients {
        case peers([String])
        case group(String)

        init(to peers: [String]?, group: String?, otherwise problem: APIProblem) throws(APIProblem) {
            switch (peers, group) {
            case (nil, let group?):
                guard !group.isEmpty else { throw APIProblem.isEmpty("group") }
                self = .group(group)
            case (_?, _?): throw APIProblem(.invalidParameter, "either `to` or `group` is given, not both")
            case (let peers, nil):
                guard let peers, !peers.isEmpty, !peers.contains("") else { throw problem }
                self = .peers(peers)
            }
        }
    }

    private static func digest(_ word: String?) throws -> Resource.Digest {
        guard let word else { return .xxh3 }
        guard let digest = Resource.Digest(rawValue: word) else {
            throw APIProblem(.invalidParameter, "`digest` is xxh3 or sha256, not \(word.escapedForDisplay)")
        }
        return digest
    }

    /// The parameters of a file that the caller sends as a body or as a descriptor.
    private struct Parameters {
        let recipients: Recipients
        let name: String
        let kind: Resource.Kind
        let queue: Bool
        let digest: Resource.Digest
        let limit: UInt64?
        /// The PIN of a LocalSend device.
        let pin: String?

        init(_ query: Query) throws {
            let named = query.all("to")
            self.recipients = try Recipients(
                to: named.isEmpty ? nil : named, group: try query.text("group"),
                otherwise: APIProblem(.invalidParameter, "'to' is missing in the query; name the peer"))
            guard let name = try query.text("name") else {
                throw APIProblem(.invalidParameter, "'name' is missing in the query; name the file")
            }
            self.name = name
            let kind = try query.text("kind") ?? Resource.Kind.file.rawValue
            guard let kind = Resource.Kind(rawValue: kind) else {
                throw APIProblem(.invalidParameter, "'kind' in the query is file or directory, not \(kind.escapedForDisplay)")
            }
            self.kind = kind
            self.queue = try query.flag("queue")
            self.digest = try ResourcesRoutes.digest(try query.text("digest"))
            self.limit = try query.number("limit", WireLimits.transferRate)
            self.pin = try DevicePIN.checked(try query.text("pin"))
        }
    }

    /// Sends the body as a file: directly, at the receiver's pace; or, with `queue`, after the daemon has stored it.
    private func sendBody(_ request: Request, _ context: APIContext) async throws -> Response {
        do {
            let query = try Query(request)
            let parameters = try Parameters(query)
            let length = request.headers[.contentLength].flatMap { UInt64($0) }
            guard let size = try query.number("size", 0...WireLimits.resourceSize) ?? length else {
                throw APIProblem(
                    .invalidParameter, "the size is unknown; send a Content-Length, or 'size' in the query", status: .lengthRequired)
            }
            guard length == nil || length == size else {
                throw APIProblem(.invalidParameter, "'size' in the query and the Content-Length differ; send one of them")
            }
            let attributes = try ControlAPI.FileAttributes(query)?.onDisk
            guard attributes == nil || parameters.kind == .file else {
                throw APIProblem(.invalidParameter, "'modified' in the query is of a file; a directory's tree has the times of its entries")
            }
            let (name, kind, digest, limit, queue) = (
                parameters.name, parameters.kind, parameters.digest, parameters.limit, parameters.queue
            )
            let resources = try await ClientPresence.required(on: context.channel) {
                let node = self.api.node
                switch parameters.recipients {
                case .group(let group):
                    return try await node.sendResource(
                        toGroup: group, name: name, kind: kind, size: size, digest: digest, limit: limit, attributes: attributes,
                        queue: queue,
                        body: request.body)
                case .peers(let peers):
                    return queue
                        ? try await node.queueResource(
                            to: peers, name: name, kind: kind, size: size, digest: digest, limit: limit, attributes: attributes,
                            pin: parameters.pin, body: request.body)
                        : try await node.sendResource(
                            to: peers, name: name, kind: kind, size: size, digest: digest, limit: limit, attributes: attributes,
                            pin: parameters.pin, body: request.body)
                }
            }
            // The daemon has stored the file, but the receivers do not have it yet.
            let isKept = if case .group = parameters.recipients { true } else { queue }
            return try Self.list(resources, status: isKept ? .accepted : .ok)
        } catch {
            // The rest of the body may be unread and very long.
            var problem = APIProblem(error)
            problem.closesConnection = true
            throw problem
        }
    }

    /// Sends a file that the caller opened and passes as a descriptor. The daemon can read it again, so that the transfer survives a lost
    /// connection to the peer. With `queue`, or to a group, it is sent like a body: from a copy.
    private func sendFile(_ request: Request, _ context: APIContext) async throws -> Never {
        try DescriptorConnection.requireNoBody(request)
        let parameters = try Parameters(try Query(request))
        guard parameters.kind == .file else {
            throw APIProblem(.invalidParameter, "only a file can be passed as a descriptor; send a directory as a body")
        }
        let (node, digest, limit, queue) = (self.api.node, parameters.digest, parameters.limit, parameters.queue)
        try await DescriptorConnection.receive(context, subject: parameters.name, for: .reading) { file, connection in
            let held = HeldFile(file, name: parameters.name)
            let resources: [Resource]
            switch parameters.recipients {
            case .group(let group):
                resources = try await node.sendResource(toGroup: group, file: held, digest: digest, limit: limit, queue: queue)
            case .peers(let peers) where queue:
                resources = try await node.queueResource(to: peers, file: held, digest: digest, limit: limit, pin: parameters.pin)
            case .peers(let peers):
                let id = ResourceID.random()
                resources = try await Self.telling(of: id, node, connection) {
                    try await node.sendResource(
                        to: peers, file: held, as: id, digest: digest, limit: limit, pin: parameters.pin
                    ) { row in
                        try? await connection.tell(ControlAPI.DescriptorLine(resource: ControlAPI.Resource(row)))
                    }
                }
            }
            return ControlAPI.DescriptorLine(resources: resources.map(ControlAPI.Resource.init))
        }
    }

    /// Runs `send`, and tells the client of the transfer's progress meanwhile.
    private static func telling(
        of id: ResourceID, _ node: Node, _ connection: DescriptorConnection,
        _ send: @escaping @Sendable () async throws -> [Resource]
    ) async throws -> [Resource] {
        let events = node.events.subscribe()
        return try await withThrowingTaskGroup(of: [Resource]?.self) { group in
            group.addTask { try await send() }
            group.addTask {
                for await event in events {
                    guard case .resourceProgress(let row) = event.kind, row.id == id else { continue }
                    // The client's end also ends the transfer.
                    guard (try? await connection.tell(ControlAPI.DescriptorLine(resource: ControlAPI.Resource(row)))) != nil else { break }
                }
                return nil
            }
            defer { group.cancelAll() }
            while let result = try await group.next() { if let result { return result } }
            throw CancellationError()
        }
    }

    private func content(_ request: Request, _ context: APIContext) async throws -> Response {
        let id: ResourceID = try context.identifier("a resource")
        let content = try await self.api.node.resourceContent(id)
        // The answer to a HEAD has nothing behind its fields.
        if let file = content.file, !context.isHead, DescriptorConnection.isWanted(by: request.head) {
            try await DescriptorConnection.pass(file, context)
        }
        if let archive = content.archive(), !TreeFormat.isWanted(by: request.headers) { return TreeFormat.response(archive) }
        let tag = content.digest.map { "\"\($0)\"" }
        let range = ByteRange.requested(in: request.headers, of: content.size, tag: tag)
        var headers: HTTPFields = [.acceptRanges: "bytes"]
        headers[.contentType] = content.kind == .directory ? ControlAPI.treeMediaType : "application/octet-stream"
        headers[.eTag] = tag
        for (name, value) in try await content.attributes().map(ControlAPI.FileAttributes.init)?.fields ?? [] { headers[name] = value }
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
                // The file became shorter meanwhile. The promised length cannot be sent, and the closed connection shows that.
                guard piece.readableBytes > 0 else { throw EarshotError(.storage, "the content of \(id) ends at \(offset) bytes") }
                offset += UInt64(piece.readableBytes)
                try await writer.write(piece)
            }
            try await writer.finish(nil)
        }
        return Response(status: range == .whole ? .ok : .partialContent, headers: headers, body: body)
    }
}
