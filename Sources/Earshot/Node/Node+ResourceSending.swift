package import EarshotSafety
import EarshotWaiting
public import EarshotWire
import FoundationEssentials
public import NIOCore
import OrderedCollections

/// Sending resources: by path, or as a body that is streamed or stored first.
extension Node {
    /// Sends a file or a directory by its path to one or more peers, under its own name or `name`. Returns one row per peer when the path
    /// has been examined. If the call throws, it sends to no peer.
    ///
    /// An interrupted transfer resumes when the peer returns within `resourceResumeTime`, also after a restart. With `queue`, the transfer
    /// also waits for a peer that is absent from the start, until `outboxAge`. It is then on disk when this returns. A trusted peer
    /// without a session is invited whenever it is seen.
    /// - Throws: as ``send(to:contentType:body:id:timeout:)``; `invalid-source` if the path is not a readable file or directory, or if a
    ///   directory has an entry that is not a file, a directory or a link; `name-rejected` for a link that leads out of the directory;
    ///   with `queue`, `no-space` if too many transfers wait already, and `storage`.
    ///
    /// Each transfer moves at most `limit` bytes per second, 1 KiB to 1 TiB; `nil` is no limit. `invalid-parameter` for other limits.
    @discardableResult
    public func sendResource(
        to peers: [any PeerReference], path: String, name: String? = nil, digest: Resource.Digest = .xxh3, limit: UInt64? = nil,
        queue: Bool = false, pin: String? = nil
    ) async throws(EarshotError) -> [Resource] {
        try await self.sendResource(
            to: peers.map(\.description), path: path, of: nil, name: name, digest: digest, limit: limit, queue: queue, pin: pin)
    }

    /// Sends a path that must lead to the caller's file `file`. The caller may be in another mount namespace.
    package func sendResource(
        to names: [String], path: String, of file: FileStatus.Identity?, name: String?, digest: Resource.Digest, limit: UInt64?,
        queue: Bool, pin: String? = nil
    ) async throws(EarshotError) -> [Resource] {
        try Self.check(name, 0, limit)
        let peers = try queue ? self.core.recipients(names) : self.recipients(names)
        return try await self.send(path, of: file, name, to: peers.map { Conversation(with: $0) }, shareID: nil, digest, limit, queue, pin)
    }

    /// Sends a file or a directory to every other member of a group that is not blocked here, to a few members at a time. The rows share a
    /// `Resource.shareID`. An absent member is waited for until `resourceReachTime`; with `queue`, as long as for a queued transfer.
    /// - Throws: `unknown-group`, `ambiguous-group`; `invalid-parameter` if there is no other member; otherwise as
    ///   ``sendResource(to:path:name:digest:limit:queue:)``.
    @discardableResult
    public func sendResource(
        toGroup group: any GroupReference, path: String, digest: Resource.Digest = .xxh3, limit: UInt64? = nil, queue: Bool = false
    ) async throws(EarshotError) -> [Resource] {
        try await self.sendResource(toGroup: group.description, path: path, of: nil, name: nil, digest: digest, limit: limit, queue: queue)
    }

    /// Sends a path to a group. The path must lead to the caller's file `file`.
    package func sendResource(
        toGroup group: String, path: String, of file: FileStatus.Identity?, name: String?, digest: Resource.Digest, limit: UInt64?,
        queue: Bool
    ) async throws(EarshotError) -> [Resource] {
        try Self.check(name, 0, limit)
        let conversations = try self.core.conversations(inGroup: group)
        return try await self.send(path, of: file, name, to: conversations, shareID: .random(), digest, limit, queue, nil)
    }

    private func send(
        _ path: String, of file: FileStatus.Identity?, _ name: String?, to conversations: [Conversation], shareID: ShareID?,
        _ digest: Resource.Digest, _ limit: UInt64?, _ queue: Bool, _ pin: String?
    ) async throws(EarshotError) -> [Resource] {
        if queue || shareID != nil { try self.core.checkQueue(adding: conversations.count) }
        // Opened once for all members, because a walk of a directory may take minutes.
        let opened = try await SourceOpening.open(.path(path))
        guard file == nil || file == opened.identity else {
            throw EarshotError(
                .invalidSource,
                "\(path.escapedForDisplay) is another file here than for the caller")
        }
        let source = opened.source
        let drafts = conversations.map { conversation in
            ResourceDraft(
                id: .random(), to: conversation, shareID: shareID, name: name ?? opened.name, kind: opened.kind, size: source.size,
                path: path, source: .path, stamp: source.stamp, digest: digest, isQueued: queue, limit: limit, pin: pin)
        }
        return try await self.send(drafts, opened: source)
    }

    /// Starts the transfers. A later failure appears in the row of its transfer.
    private func send(_ drafts: [ResourceDraft], opened source: (any ResourceSource)?) async throws(EarshotError) -> [Resource] {
        if let source {
            let opened = OpenedContent(.source(source))
            for draft in drafts { self.openedSources[draft.id] = opened }
        }
        // Drops the opened sources that no transfer has taken. A transfer reopens its source when its turn comes, so that a thousand
        // waiting transfers do not need a thousand descriptors.
        defer { for draft in drafts { self.openedSources[draft.id] = nil } }
        return try await self.call(.resource(.send(drafts))).resources
    }

    /// Sends a resource while its body is read, and returns when the peer has published it. A lost connection ends the transfer.
    ///
    /// `size` must be the exact length of the body in bytes. A directory's body is its tree, as specified by the protocol. A body can be
    /// read only once, so there is one recipient. If the caller's task is cancelled, the transfer is cancelled.
    /// - Throws: as ``send(to:contentType:body:id:timeout:)``; `name-rejected`; the error that ended the transfer.
    @discardableResult
    public func sendResource<Body: AsyncSequence & Sendable>(
        to peers: [any PeerReference], name: String, kind: Resource.Kind = .file, size: UInt64, digest: Resource.Digest = .xxh3,
        limit: UInt64? = nil, body: Body
    ) async throws(EarshotError) -> [Resource] where Body.Element == ByteBuffer {
        try await self.sendResource(
            to: peers.map(\.description), name: name, kind: kind, size: size, digest: digest, limit: limit, attributes: nil, body: body)
    }

    /// Sends a file with these attributes while its body is read.
    package func sendResource<Body: AsyncSequence & Sendable>(
        to names: [String], name: String, kind: Resource.Kind, size: UInt64, digest: Resource.Digest, limit: UInt64?,
        attributes: FileAttributes?, pin: String? = nil, body: Body
    ) async throws(EarshotError) -> [Resource] where Body.Element == ByteBuffer {
        try Self.check(name, size, limit)
        guard !self.core.areStreamsOver else { throw Self.stopping }
        let peer = try self.only(try self.recipients(names))
        let draft = ResourceDraft(
            id: .random(), to: Conversation(with: peer), name: name, kind: kind, size: size, source: .body, digest: digest,
            attributes: attributes, limit: limit, pin: pin)
        let source = try BodySource(size: size, digest: digest == .sha256 ? .sha256 : .xxh3)
        self.openedSources[draft.id] = OpenedContent(.body(source))
        return [try await self.sendOfCaller(draft) { ended in await Self.forward(ThrowingBytes(body), to: source.feed, until: ended) }]
    }

    /// Sends a file that the caller holds open, as the resource `id`, and returns when the peer has published it. If the connection is lost,
    /// the transfer resumes when the peer returns within `resourceResumeTime`. If the caller's task is cancelled, so is the transfer. `began`
    /// is called with the first row.
    /// - Throws: as ``send(to:contentType:body:id:timeout:)``; `invalid-source` if it is not a regular file that is open for reading;
    ///   `name-rejected`; the error that ended the transfer.
    package func sendResource(
        to names: [String], file: HeldFile, as id: ResourceID, digest: Resource.Digest, limit: UInt64?, pin: String? = nil,
        began: @Sendable (Resource) async -> Void
    ) async throws(EarshotError) -> [Resource] {
        try Self.check(file.name, 0, limit)
        guard !self.core.areStreamsOver else { throw Self.stopping }
        let peer = try self.only(try self.recipients(names))
        let source = try await SourceOpening.open(.file(file)).source
        let draft = ResourceDraft(
            id: id, to: Conversation(with: peer), name: file.name, kind: .file, size: source.size, source: .held, stamp: source.stamp,
            digest: digest, limit: limit, pin: pin)
        self.openedSources[id] = OpenedContent(.source(source))
        self.heldFiles[id] = file
        defer {
            self.openedSources[id] = nil
            self.heldFiles[id] = nil
        }
        let row = try await self.sendOfCaller(draft) { ended in
            if let row = try? self.resource(id) { await began(row) }
            return await ended.value()
        }
        return [row]
    }

    /// Sends a resource whose bytes are the caller's, and returns its row when it is completed. `finish` returns the result of `ended`.
    private func sendOfCaller(
        _ draft: ResourceDraft, _ finish: (OneShot<Result<Resource, EarshotError>>) async -> Result<Resource, EarshotError>
    ) async throws(EarshotError) -> Resource {
        let ended = OneShot<Result<Resource, EarshotError>>()
        self.call(.resource(.sendBody(draft))) { answer in
            ended.settle(Result { () throws(EarshotError) in try answer.resource })
        }
        let final = await withTaskCancellationHandler {
            await finish(ended)
        } onCancel: {
            self.input.yield(.core(.transfer(draft.id, .abandoned)))
        }
        let row = try final.get()
        if row.state != .completed { throw EarshotError(row.error ?? .unavailable, row.errorMessage ?? "the transfer failed") }
        return row
    }

    /// Stores a body in the spool, and sends it from there like a path with `queue`. When this returns, the body is on disk.
    ///
    /// - Throws: as ``send(to:contentType:body:id:timeout:)``; `name-rejected`; `no-space` beyond the spool's quota or the reserve; the
    ///   error of the body.
    @discardableResult
    public func queueResource<Body: AsyncSequence & Sendable>(
        to peers: [any PeerReference], name: String, kind: Resource.Kind = .file, size: UInt64, digest: Resource.Digest = .xxh3,
        limit: UInt64? = nil, body: Body
    ) async throws(EarshotError) -> [Resource] where Body.Element == ByteBuffer {
        try await self.queueResource(
            to: peers.map(\.description), name: name, kind: kind, size: size, digest: digest, limit: limit, attributes: nil, body: body)
    }

    /// Stores the body of a file with these attributes, and sends it from the spool.
    package func queueResource<Body: AsyncSequence & Sendable>(
        to names: [String], name: String, kind: Resource.Kind, size: UInt64, digest: Resource.Digest, limit: UInt64?,
        attributes: FileAttributes?, pin: String? = nil, body: Body
    ) async throws(EarshotError) -> [Resource] where Body.Element == ByteBuffer {
        try Self.check(name, size, limit)
        let peer = try self.only(try self.core.recipients(names))
        let body = KeptBody(
            name: name, kind: kind, size: size, digest: digest, limit: limit, attributes: attributes, pin: pin,
            content: .pieces(ThrowingBytes(body)))
        return try await self.keep(body, for: [Conversation(with: peer)], shareID: nil, queue: true)
    }

    /// Stores one copy of a body in the spool, and sends it from there to every other member of a group. When this returns, the body is on
    /// disk. Rows and `queue` are the same as for a path.
    ///
    /// - Throws: as ``queueResource(to:name:kind:size:digest:limit:body:)`` and ``sendResource(toGroup:path:digest:limit:queue:)``.
    @discardableResult
    public func sendResource<Body: AsyncSequence & Sendable>(
        toGroup group: any GroupReference, name: String, kind: Resource.Kind = .file, size: UInt64, digest: Resource.Digest = .xxh3,
        limit: UInt64? = nil, queue: Bool = false, body: Body
    ) async throws(EarshotError) -> [Resource] where Body.Element == ByteBuffer {
        try await self.sendResource(
            toGroup: group.description, name: name, kind: kind, size: size, digest: digest, limit: limit, attributes: nil, queue: queue,
            body: body)
    }

    /// Stores the body of a file with these attributes, and sends it from the spool to a group.
    package func sendResource<Body: AsyncSequence & Sendable>(
        toGroup group: String, name: String, kind: Resource.Kind, size: UInt64, digest: Resource.Digest, limit: UInt64?,
        attributes: FileAttributes?, queue: Bool, body: Body
    ) async throws(EarshotError) -> [Resource] where Body.Element == ByteBuffer {
        try Self.check(name, size, limit)
        let conversations = try self.core.conversations(inGroup: group)
        let body = KeptBody(
            name: name, kind: kind, size: size, digest: digest, limit: limit, attributes: attributes, content: .pieces(ThrowingBytes(body)))
        return try await self.keep(body, for: conversations, shareID: .random(), queue: queue)
    }

    /// Stores a file that the caller holds open in the spool, and sends it from there like a path with `queue`.
    /// - Throws: as ``queueResource(to:name:kind:size:digest:limit:body:)``; `invalid-source`; `source-changed`.
    package func queueResource(
        to names: [String], file: HeldFile, digest: Resource.Digest, limit: UInt64?, pin: String? = nil
    ) async throws(EarshotError) -> [Resource] {
        try Self.check(file.name, 0, limit)
        let peer = try self.only(try self.core.recipients(names))
        var body = try await KeptBody.of(file, digest, limit)
        body.pin = pin
        return try await self.keep(body, for: [Conversation(with: peer)], shareID: nil, queue: true)
    }

    /// Stores a file that the caller holds open in the spool, and sends it from there to a group.
    /// - Throws: as ``queueResource(to:file:digest:limit:)``.
    package func sendResource(
        toGroup group: String, file: HeldFile, digest: Resource.Digest, limit: UInt64?, queue: Bool
    ) async throws(EarshotError) -> [Resource] {
        try Self.check(file.name, 0, limit)
        let conversations = try self.core.conversations(inGroup: group)
        return try await self.keep(try await .of(file, digest, limit), for: conversations, shareID: .random(), queue: queue)
    }

    /// A body that is stored before it is sent.
    private struct KeptBody {
        let name: String
        let kind: Resource.Kind
        let size: UInt64
        let digest: Resource.Digest
        let limit: UInt64?
        let attributes: FileAttributes?
        var pin: String?
        let content: Content

        /// The source of the bytes.
        enum Content {
            case pieces(any AsyncSequence<ByteBuffer, any Error> & Sendable)
            case source(any ResourceSource)
        }

        /// Returns the content of an open file.
        static func of(_ held: HeldFile, _ digest: Resource.Digest, _ limit: UInt64?) async throws(EarshotError) -> Self {
            let source = try await SourceOpening.open(.file(held)).source
            return Self(
                name: held.name, kind: .file, size: source.size, digest: digest, limit: limit, attributes: source.attributes,
                content: .source(source))
        }
    }

    private func keep(
        _ body: KeptBody, for conversations: [Conversation], shareID: ShareID?, queue: Bool
    ) async throws(EarshotError) -> [Resource] {
        try self.core.checkQueue(adding: conversations.count)
        let ids = conversations.map { _ in ResourceID.random() }
        guard let first = ids.first else { return [] }
        _ = try await self.spool.begin(first, size: body.size, self.allowance, attributes: body.attributes)
        do {
            switch body.content {
            case .source(let source): try await self.spool.copy(source, into: first)
            case .pieces(let pieces):
                var offset: UInt64 = 0
                for try await piece in pieces { offset = try await self.spool.write(first, offset: offset, piece) }
            }
        } catch {
            await self.spool.abandon(first)
            throw error as? EarshotError ?? EarshotError(.cancelled, "the body was cut off", underlying: error)
        }
        _ = try await self.spool.keepForSending(first)
        do throws(EarshotError) {
            if ids.count > 1 { try await self.spool.share(first, with: Array(ids.dropFirst())) }
            let stamp = try await self.spool.outgoingSource(first).stamp
            let drafts = zip(ids, conversations).map { id, conversation in
                ResourceDraft(
                    id: id, to: conversation, shareID: shareID, name: body.name, kind: body.kind, size: body.size, source: .spool,
                    stamp: stamp, digest: body.digest, isQueued: queue, limit: body.limit, pin: body.pin)
            }
            return try await self.send(drafts, opened: nil)
        } catch {
            for id in ids { await self.spool.dropOutgoing(id) }
            throw error
        }
    }

    /// Reads the body for its transfer until the transfer has ended. When this returns, the body is no longer read and belongs to the
    /// caller again.
    private static func forward(
        _ body: any AsyncSequence<ByteBuffer, any Error> & Sendable, to feed: BodyFeed, until ended: OneShot<Result<Resource, EarshotError>>
    ) async -> Result<Resource, EarshotError> {
        await withTaskGroup(of: Result<Resource, EarshotError>?.self) { group in
            group.addTask {
                await feed.read(body)
                return nil
            }
            group.addTask { await ended.value() }
            var final: Result<Resource, EarshotError>?
            for await result in group where result != nil {
                final = result
                feed.close()
                group.cancelAll()
            }
            return final ?? .failure(Self.stopping)
        }
    }

    /// Checks the name for the receiver if it is given, the size in bytes, and the rate in bytes per second.
    private static func check(_ name: String?, _ size: UInt64, _ limit: UInt64?) throws(EarshotError) {
        guard size <= WireLimits.resourceSize else {
            throw EarshotError(.tooLarge, "a resource has at most \(WireLimits.resourceSize) bytes")
        }
        if let name, (try? SafeName(name)) == nil {
            throw EarshotError(.nameRejected, "\(name.debugDescription) is not the name of a file")
        }
        let range = WireLimits.transferRate
        guard limit.map(range.contains) ?? true else {
            throw EarshotError(.invalidParameter, "a transfer's limit is \(range.lowerBound) to \(range.upperBound) bytes per second")
        }
    }

    private func only(_ peers: [PeerID]) throws(EarshotError) -> PeerID {
        guard peers.count == 1, let peer = peers.first else {
            throw EarshotError(.unsupported, "a streamed body goes to one peer; send it to each")
        }
        return peer
    }
}
