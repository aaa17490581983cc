import AsyncHTTPClient
import NIOHTTP1

/// The calls of the API (`GET /v1/openapi.json`), in the order of its document.
extension ControlClient {
    /// `GET /v1/status`
    public func status() async throws(ControlError) -> ControlReply<ControlAPI.Status> {
        try await self.call(.GET, ControlPath.path(["status"]), as: ControlAPI.Status.self)
    }

    /// `GET /v1/peers`
    public func peers() async throws(ControlError) -> ControlReply<ControlAPI.PeerList> {
        try await self.call(.GET, ControlPath.path(["peers"]), as: ControlAPI.PeerList.self)
    }

    /// `GET /v1/peers/{peer}`, in any form of naming it.
    public func peer(_ peer: String) async throws(ControlError) -> ControlReply<ControlAPI.Peer> {
        try await self.call(.GET, ControlPath.path(["peers", peer]), as: ControlAPI.Peer.self)
    }

    /// `PUT /v1/peers/{peer}/trust`; for so many seconds, or for good.
    public func setTrust(
        _ trust: ControlAPI.Trust, of peer: String, forSeconds seconds: Double? = nil
    ) async throws(ControlError) -> ControlReply<ControlAPI.Peer> {
        let body = try Self.json(ControlAPI.TrustRequest(trust: .known(trust), forSeconds: seconds))
        return try await self.call(.PUT, ControlPath.path(["peers", peer, "trust"]), body: body, as: ControlAPI.Peer.self)
    }

    /// `GET /v1/peers/{peer}/policy`
    public func policy(of peer: String) async throws(ControlError) -> ControlReply<ControlAPI.PeerPolicy> {
        try await self.call(.GET, ControlPath.path(["peers", peer, "policy"]), as: ControlAPI.PeerPolicy.self)
    }

    /// `POST /v1/peers/{peer}/ping`: a step that fails is no error.
    public func ping(_ peer: String) async throws(ControlError) -> ControlReply<ControlAPI.PeerPing> {
        try await self.call(.POST, ControlPath.path(["peers", peer, "ping"]), as: ControlAPI.PeerPing.self)
    }

    /// `POST /v1/peers/{peer}/verification`
    public func verify(_ peer: String, timeoutSeconds: Double? = nil) async throws(ControlError) -> ControlReply<ControlAPI.Verification> {
        let body = try Self.json(ControlAPI.VerificationRequest(timeoutSeconds: timeoutSeconds))
        return try await self.call(.POST, ControlPath.path(["peers", peer, "verification"]), body: body, as: ControlAPI.Verification.self)
    }

    /// `GET /v1/peers/{peer}/verification`
    public func verification(of peer: String) async throws(ControlError) -> ControlReply<ControlAPI.Verification> {
        try await self.call(.GET, ControlPath.path(["peers", peer, "verification"]), as: ControlAPI.Verification.self)
    }

    /// `DELETE /v1/peers/{peer}/verification`: gives it up, or says that the digits differ.
    @discardableResult
    public func endVerification(of peer: String, mismatch: Bool) async throws(ControlError) -> ControlReply<ControlAPI.Verification> {
        let path = ControlPath.path(["peers", peer, "verification"], query: [("mismatch", mismatch ? "true" : nil)])
        return try await self.call(.DELETE, path, as: ControlAPI.Verification.self)
    }

    /// `POST /v1/invitations`; with `wait` it answers when the invitation is decided.
    public func invite(
        _ request: ControlAPI.InvitationRequest, wait: Bool
    ) async throws(ControlError) -> ControlReply<ControlAPI.Invitation> {
        let path = ControlPath.path(["invitations"], query: [("wait", wait ? "true" : nil)])
        return try await self.call(.POST, path, body: try Self.json(request), as: ControlAPI.Invitation.self)
    }

    /// `GET /v1/invitations`: the pending ones, or all.
    public func invitations(all: Bool = false) async throws(ControlError) -> ControlReply<ControlAPI.InvitationList> {
        let path = ControlPath.path(["invitations"], query: [("state", all ? "all" : nil)])
        return try await self.call(.GET, path, as: ControlAPI.InvitationList.self)
    }

    /// `GET /v1/invitations/{id}`
    public func invitation(_ id: String) async throws(ControlError) -> ControlReply<ControlAPI.Invitation> {
        try await self.call(.GET, ControlPath.path(["invitations", id]), as: ControlAPI.Invitation.self)
    }

    /// `DELETE /v1/invitations/{id}`
    public func withdraw(_ id: String) async throws(ControlError) {
        try await self.perform(.DELETE, ControlPath.path(["invitations", id]))
    }

    /// `POST /v1/invitations/{id}/response`
    public func respond(
        to id: String, _ decision: ControlAPI.InvitationResponse.Decision, always: Bool? = nil
    ) async throws(ControlError) -> ControlReply<ControlAPI.Invitation> {
        let body = try Self.json(ControlAPI.InvitationResponse(decision: .known(decision), always: always))
        return try await self.call(
            .POST, ControlPath.path(["invitations", id, "response"]), body: body, as: ControlAPI.Invitation.self)
    }

    /// `GET /v1/sessions`
    public func sessions() async throws(ControlError) -> ControlReply<ControlAPI.SessionList> {
        try await self.call(.GET, ControlPath.path(["sessions"]), as: ControlAPI.SessionList.self)
    }

    /// `DELETE /v1/sessions/{id}`
    public func leave(_ id: String) async throws(ControlError) {
        try await self.perform(.DELETE, ControlPath.path(["sessions", id]))
    }

    /// `POST /v1/messages`: answers when every recipient has it, or will not get it.
    public func send(_ request: ControlAPI.MessageRequest) async throws(ControlError) -> ControlReply<ControlAPI.MessageReceipt> {
        try await self.call(.POST, ControlPath.path(["messages"]), body: try Self.json(request), as: ControlAPI.MessageReceipt.self)
    }

    /// `POST /v1/messages` with a request a line: each is answered by a ``ControlAPI/MessageLineResult``, as they come; where only `failures`
    /// are wanted, those alone.
    public func send(lines: AsyncStreamOfBytes, failures: Bool) async throws(ControlError) -> ControlLines {
        let response = try await self.open(
            .POST, ControlPath.path(["messages"]), body: .lines(lines), accept: "application/x-ndjson",
            prefer: failures ? "return=minimal" : nil)
        return ControlLines(response: response, client: self)
    }

    /// `GET /v1/messages`: incoming ones, the oldest first; unread ones, or all; those behind the `next` of an earlier answer.
    public func messages(
        all: Bool = false, from peer: String? = nil, in group: String? = nil, after place: String? = nil, limit: Int
    ) async throws(ControlError) -> ControlReply<ControlAPI.MessageList> {
        let path = ControlPath.path(
            ["messages"],
            query: [
                ("state", all ? "all" : "unread"), ("from", peer), ("group", group), ("after", place), ("limit", "\(limit)"),
            ])
        return try await self.call(.GET, path, as: ControlAPI.MessageList.self)
    }

    /// `POST /v1/messages/read`: at most 1,000 at once.
    public func markRead(_ messages: [ControlAPI.ReadRequest.Entry]) async throws(ControlError) -> ControlReply<ControlAPI.ReadResult> {
        let body = try Self.json(ControlAPI.ReadRequest(messages: messages))
        return try await self.call(.POST, ControlPath.path(["messages", "read"]), body: body, as: ControlAPI.ReadResult.self)
    }

    /// `GET /v1/outbox`
    public func outbox() async throws(ControlError) -> ControlReply<ControlAPI.Outbox> {
        try await self.call(.GET, ControlPath.path(["outbox"]), as: ControlAPI.Outbox.self)
    }

    /// `DELETE /v1/outbox/{id}`: takes a message back from all recipients that have not got it.
    public func cancelQueued(_ id: String) async throws(ControlError) -> ControlReply<ControlAPI.MessageReceipt> {
        try await self.call(.DELETE, ControlPath.path(["outbox", id]), as: ControlAPI.MessageReceipt.self)
    }

    /// `POST /v1/resources` with a path that the daemon opens itself; answers at once.
    public func sendResource(_ request: ControlAPI.ResourceRequest) async throws(ControlError) -> ControlReply<ControlAPI.ResourceList> {
        try await self.call(.POST, ControlPath.path(["resources"]), body: try Self.json(request), as: ControlAPI.ResourceList.self).whole()
    }

    /// `POST /v1/resources` with the content as the body; answers when the receiver has it, or with `queue` and for a group when the daemon has.
    public func sendResource(
        to recipient: ControlAPI.ResourceRecipient, name: String, kind: ControlAPI.Resource.Kind = .file, size: Int64,
        content: AsyncStreamOfBytes,
        digest: ControlAPI.Resource.Digest? = nil, queue: Bool = false, attributes: ControlAPI.FileAttributes? = nil
    ) async throws(ControlError) -> ControlReply<ControlAPI.ResourceList> {
        var query = [recipient.query, ("name", name), ("size", "\(size)")]
        if kind != .file { query.append(("kind", kind.rawValue)) }
        if let digest { query.append(("digest", digest.rawValue)) }
        if queue { query.append(("queue", "true")) }
        if let attributes {
            query.append(("modified", "\(attributes.modified)"))
            if attributes.isExecutable { query.append(("executable", "true")) }
            if attributes.hasHoles { query.append(("holes", "true")) }
        }
        let path = ControlPath.path(["resources"], query: query)
        return try await self.call(.POST, path, body: .stream(content, length: size), as: ControlAPI.ResourceList.self).whole()
    }

    /// `GET /v1/resources`: those of one group, where one is given.
    public func resources(in group: String? = nil) async throws(ControlError) -> ControlReply<ControlAPI.ResourceList> {
        try await self.call(.GET, ControlPath.path(["resources"], query: [("group", group)]), as: ControlAPI.ResourceList.self)
    }

    /// `GET /v1/resources/{id}`
    public func resource(_ id: String) async throws(ControlError) -> ControlReply<ControlAPI.Resource> {
        try await self.call(.GET, ControlPath.path(["resources", id]), as: ControlAPI.Resource.self)
    }

    /// `GET /v1/resources/{id}` by the id of what was sent to a group
    public func share(_ id: String) async throws(ControlError) -> ControlReply<ControlAPI.ResourceList> {
        try await self.call(.GET, ControlPath.path(["resources", id]), as: ControlAPI.ResourceList.self)
    }

    /// `POST /v1/resources/{id}/response`
    public func respond(
        toOffer id: String, _ decision: ControlAPI.ResourceResponse.Decision
    ) async throws(ControlError) -> ControlReply<ControlAPI.Resource> {
        let body = try Self.json(ControlAPI.ResourceResponse(decision: .known(decision)))
        return try await self.call(.POST, ControlPath.path(["resources", id, "response"]), body: body, as: ControlAPI.Resource.self)
    }

    /// `GET /v1/resources/{id}/content`; a directory's as a tar archive, or with `asTree` in the protocol's own format.
    public func content(of id: String, asTree: Bool = false) async throws(ControlError) -> ControlContent {
        let path = ControlPath.path(["resources", id, "content"])
        let accept = asTree ? ControlAPI.treeMediaType : "*/*"
        return ControlContent(response: try await self.open(.GET, path, accept: accept), client: self)
    }

    /// `DELETE /v1/resources/{id}/content`: drops the content from the spool and keeps the row.
    public func dropContent(of id: String) async throws(ControlError) {
        try await self.perform(.DELETE, ControlPath.path(["resources", id, "content"]))
    }

    /// `DELETE /v1/resources/{id}`: cancels one that is on its way, deletes one that is done; by a share's id all of it.
    public func removeResource(_ id: String) async throws(ControlError) {
        try await self.perform(.DELETE, ControlPath.path(["resources", id]))
    }

    /// `GET /v1/streams`
    public func streams() async throws(ControlError) -> ControlReply<ControlAPI.StreamList> {
        try await self.call(.GET, ControlPath.path(["streams"]), as: ControlAPI.StreamList.self)
    }

    /// `GET /v1/streams/{id}`
    public func stream(_ id: String) async throws(ControlError) -> ControlReply<ControlAPI.Stream> {
        try await self.call(.GET, ControlPath.path(["streams", id]), as: ControlAPI.Stream.self)
    }

    /// `DELETE /v1/streams/{id}`: aborts a stream, also one of which this side has read everything and could not keep it, before its connection
    /// ends.
    public func abortStream(_ id: String) async throws(ControlError) {
        try await self.perform(.DELETE, ControlPath.path(["streams", id]))
    }

    /// `GET /v1/events`: from now on, or from after event `since` as far as the daemon still has it.
    public func events(since: UInt64? = nil, epoch: String? = nil) async throws(ControlError) -> ControlEvents {
        try await self.events(since: ControlEventPosition(epoch: epoch, sequence: since), resumption: nil)
    }

    /// `GET /v1/events`, which resumes after each interruption: when the daemon is restarted, and when it drops this reader for being too slow.
    ///
    /// `onInterruption` is called once for each. The reader then reconnects with growing pauses and continues after its last event. A `gap`
    /// says what it missed, and comes after every restart. A daemon that stays away for longer than `patience` is an error; without one the
    /// reader waits until its task is cancelled. The first connection is not retried.
    public func events(
        since: UInt64? = nil, epoch: String? = nil, patience: Duration? = nil,
        onInterruption: @escaping @Sendable (ControlInterruption) -> Void
    ) async throws(ControlError) -> ControlEvents {
        try await self.events(
            since: ControlEventPosition(epoch: epoch, sequence: since),
            resumption: ControlResumption(patience: patience, onInterruption: onInterruption))
    }

    func events(
        since position: ControlEventPosition, resumption: ControlResumption?
    ) async throws(ControlError) -> ControlEvents {
        let path = ControlPath.path(["events"], query: [("since", position.sequence.map { "\($0)" }), ("epoch", position.epoch)])
        return ControlEvents(
            response: try await self.open(.GET, path, accept: "application/x-ndjson"), since: position, resumption: resumption, client: self
        )
    }

    static func json(_ value: some Encodable) throws(ControlError) -> Body {
        do {
            return .json(try ControlJSON.encode(value))
        } catch {
            throw .malformed("the request cannot be written as JSON: \(error)")
        }
    }
}
