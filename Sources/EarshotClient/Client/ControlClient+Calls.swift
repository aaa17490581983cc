import AsyncHTTPClient
public import EarshotWire
import NIOHTTP1

/// The calls of the API (`GET /v1/openapi.json`), in the order of its document.
extension ControlClient {
    /// `GET /v1/status`
    public func status() async throws(ControlError) -> ControlReply<ControlAPI.Status> {
        try await self.call(.GET, ControlPath.path(["status"]), as: ControlAPI.Status.self)
    }

    /// `GET /v1/settings`
    public func settings() async throws(ControlError) -> ControlReply<ControlAPI.SettingList> {
        try await self.call(.GET, ControlPath.path(["settings"]), as: ControlAPI.SettingList.self)
    }

    /// `POST /v1/settings/reload`: reads the settings files again. Invalid settings are a `conflict`, and change nothing.
    @discardableResult
    public func reloadSettings() async throws(ControlError) -> ControlReply<ControlAPI.SettingsReload> {
        try await self.call(.POST, ControlPath.path(["settings", "reload"]), as: ControlAPI.SettingsReload.self)
    }

    /// `GET /v1/peers`
    public func peers() async throws(ControlError) -> ControlReply<ControlAPI.PeerList> {
        try await self.call(.GET, ControlPath.path(["peers"]), as: ControlAPI.PeerList.self)
    }

    /// `GET /v1/peers/{peer}`, in any form of naming a peer.
    public func peer(_ peer: any PeerReference) async throws(ControlError) -> ControlReply<ControlAPI.Peer> {
        try await self.call(.GET, ControlPath.path(["peers", peer.description]), as: ControlAPI.Peer.self)
    }

    /// `PUT /v1/peers/{peer}/trust`: permanently, or for a time of more than 0 and at most 10 years.
    @discardableResult
    public func setTrust(
        _ trust: ControlAPI.Trust, of peer: any PeerReference, lasting time: Duration? = nil
    ) async throws(ControlError) -> ControlReply<ControlAPI.Peer> {
        let body = try Self.json(ControlAPI.TrustRequest(trust: .known(trust), lasting: time))
        return try await self.call(.PUT, ControlPath.path(["peers", peer.description, "trust"]), body: body, as: ControlAPI.Peer.self)
    }

    /// `PUT /v1/peers/{peer}/alias`, or `DELETE` for `nil`: gives the peer a name that goes before its own, or removes it.
    @discardableResult
    public func setAlias(_ alias: String?, of peer: any PeerReference) async throws(ControlError) -> ControlReply<ControlAPI.Peer> {
        let path = ControlPath.path(["peers", peer.description, "alias"])
        guard let alias else { return try await self.call(.DELETE, path, as: ControlAPI.Peer.self) }
        return try await self.call(.PUT, path, body: try Self.json(ControlAPI.AliasRequest(alias: alias)), as: ControlAPI.Peer.self)
    }

    /// `GET /v1/peers/{peer}/policy`
    public func policy(of peer: any PeerReference) async throws(ControlError) -> ControlReply<ControlAPI.PeerPolicy> {
        try await self.call(.GET, ControlPath.path(["peers", peer.description, "policy"]), as: ControlAPI.PeerPolicy.self)
    }

    /// `POST /v1/peers/{peer}/ping`. A failed step is not an error.
    public func ping(_ peer: any PeerReference) async throws(ControlError) -> ControlReply<ControlAPI.PeerPing> {
        try await self.call(.POST, ControlPath.path(["peers", peer.description, "ping"]), as: ControlAPI.PeerPing.self)
    }

    /// `POST /v1/peers/{peer}/verification`: waits for the peer's user until the timeout: 2 minutes by default, at most an
    /// hour.
    public func verify(
        _ peer: any PeerReference, timeout: Duration? = nil
    ) async throws(ControlError) -> ControlReply<ControlAPI.Verification> {
        let body = try Self.json(ControlAPI.VerificationRequest(timeout: timeout))
        return try await self.call(
            .POST, ControlPath.path(["peers", peer.description, "verification"]), body: body, as: ControlAPI.Verification.self)
    }

    /// `GET /v1/peers/{peer}/verification`
    public func verification(of peer: any PeerReference) async throws(ControlError) -> ControlReply<ControlAPI.Verification> {
        try await self.call(.GET, ControlPath.path(["peers", peer.description, "verification"]), as: ControlAPI.Verification.self)
    }

    /// `DELETE /v1/peers/{peer}/verification`: cancels the comparison, or reports that the digits differ.
    @discardableResult
    public func endVerification(
        of peer: any PeerReference, mismatch: Bool = false
    ) async throws(ControlError) -> ControlReply<ControlAPI.Verification> {
        let path = ControlPath.path(["peers", peer.description, "verification"], query: [("mismatch", mismatch ? "true" : nil)])
        return try await self.call(.DELETE, path, as: ControlAPI.Verification.self)
    }

    /// `POST /v1/invitations`; with `wait`, answers when the invitation is decided.
    ///
    /// The context has at most 8 KiB. The invitation waits for the peer and its user until the timeout, at most a day. `nil` and times of 0
    /// or less mean the daemon's setting, which is 30 s by default.
    @discardableResult
    public func invite(
        _ peer: any PeerReference, context: [UInt8] = [], timeout: Duration? = nil, wait: Bool = false
    ) async throws(ControlError) -> ControlReply<ControlAPI.Invitation> {
        let path = ControlPath.path(["invitations"], query: [("wait", wait ? "true" : nil)])
        let request = ControlAPI.InvitationRequest(
            peer: peer.description, context: context.isEmpty ? nil : Base64Bytes(context), timeout: timeout)
        return try await self.call(.POST, path, body: try Self.json(request), as: ControlAPI.Invitation.self)
    }

    /// `GET /v1/invitations`: the pending invitations, or all.
    public func invitations(all: Bool = false) async throws(ControlError) -> ControlReply<ControlAPI.InvitationList> {
        let path = ControlPath.path(["invitations"], query: [("state", all ? "all" : nil)])
        return try await self.call(.GET, path, as: ControlAPI.InvitationList.self)
    }

    /// `GET /v1/invitations/{id}`
    public func invitation(_ id: InvitationID) async throws(ControlError) -> ControlReply<ControlAPI.Invitation> {
        try await self.call(.GET, ControlPath.path(["invitations", id.description]), as: ControlAPI.Invitation.self)
    }

    /// `DELETE /v1/invitations/{id}`: withdraws an outgoing invitation, and returns it.
    @discardableResult
    public func withdraw(_ id: InvitationID) async throws(ControlError) -> ControlReply<ControlAPI.Invitation> {
        try await self.call(.DELETE, ControlPath.path(["invitations", id.description]), as: ControlAPI.Invitation.self)
    }

    /// `POST /v1/invitations/{id}/response`
    @discardableResult
    public func respond(
        to id: InvitationID, _ decision: ControlAPI.InvitationResponse.Decision, always: Bool? = nil
    ) async throws(ControlError) -> ControlReply<ControlAPI.Invitation> {
        let body = try Self.json(ControlAPI.InvitationResponse(decision: .known(decision), always: always))
        return try await self.call(
            .POST, ControlPath.path(["invitations", id.description, "response"]), body: body, as: ControlAPI.Invitation.self)
    }

    /// `GET /v1/sessions`
    public func sessions() async throws(ControlError) -> ControlReply<ControlAPI.SessionList> {
        try await self.call(.GET, ControlPath.path(["sessions"]), as: ControlAPI.SessionList.self)
    }

    /// `DELETE /v1/sessions/{id}`
    public func leave(_ id: SessionID) async throws(ControlError) {
        try await self.perform(.DELETE, ControlPath.path(["sessions", id.description]))
    }

    /// `POST /v1/messages`: answers when the message is delivered to every recipient or has failed.
    @discardableResult
    public func send(_ request: ControlAPI.MessageRequest) async throws(ControlError) -> ControlReply<ControlAPI.MessageReceipt> {
        try await self.call(.POST, ControlPath.path(["messages"]), body: try Self.json(request), as: ControlAPI.MessageReceipt.self)
    }

    /// `POST /v1/messages` with one request per line. Each line is answered with a ``ControlAPI/MessageLineResult`` as soon as its result
    /// is known; with `failures`, only failed lines are answered.
    public func send(lines: AsyncStreamOfBytes, failures: Bool) async throws(ControlError) -> ControlLines {
        let response = try await self.open(
            .POST, ControlPath.path(["messages"]), body: .lines(lines), accept: "application/x-ndjson",
            prefer: failures ? "return=minimal" : nil)
        return ControlLines(response: response, client: self)
    }

    /// `GET /v1/messages`: incoming messages, oldest first; the unread ones, or all; the ones after the `next` of an earlier answer.
    /// At most `limit` messages, 1 to 1,000; 100 by default.
    public func messages(
        all: Bool = false, from peer: (any PeerReference)? = nil, in group: (any GroupReference)? = nil, after place: String? = nil,
        limit: Int? = nil
    ) async throws(ControlError) -> ControlReply<ControlAPI.MessageList> {
        let path = ControlPath.path(
            ["messages"],
            query: [
                ("state", all ? "all" : "unread"), ("from", peer?.description), ("group", group?.description), ("after", place),
                ("limit", limit.map { "\($0)" }),
            ])
        return try await self.call(.GET, path, as: ControlAPI.MessageList.self)
    }

    /// `GET /v1/messages/{id}`: a message that was sent or received, with its status at each recipient if it was sent.
    public func message(_ id: MessageID) async throws(ControlError) -> ControlReply<ControlAPI.Message> {
        try await self.call(.GET, ControlPath.path(["messages", id.description]), as: ControlAPI.Message.self)
    }

    /// `POST /v1/messages/read`: at most 1,000 at once. Returns the number of messages that were unread before.
    @discardableResult
    public func markRead(_ messages: [ControlAPI.ReadRequest.Entry]) async throws(ControlError) -> Int {
        let body = try Self.json(ControlAPI.ReadRequest(messages: messages))
        return try await self.call(.POST, ControlPath.path(["messages", "read"]), body: body, as: ControlAPI.ReadResult.self).marked
    }

    /// `GET /v1/outbox`
    public func outbox() async throws(ControlError) -> ControlReply<ControlAPI.Outbox> {
        try await self.call(.GET, ControlPath.path(["outbox"]), as: ControlAPI.Outbox.self)
    }

    /// `DELETE /v1/outbox/{id}`: cancels a message for all recipients that have not received it.
    @discardableResult
    public func cancelQueued(_ id: MessageID) async throws(ControlError) -> ControlReply<ControlAPI.MessageReceipt> {
        try await self.call(.DELETE, ControlPath.path(["outbox", id.description]), as: ControlAPI.MessageReceipt.self)
    }

    /// `POST /v1/resources` with a path that the daemon opens; answers at once.
    public func sendResource(_ request: ControlAPI.ResourceRequest) async throws(ControlError) -> ControlReply<ControlAPI.ResourceList> {
        try await self.call(.POST, ControlPath.path(["resources"]), body: try Self.json(request), as: ControlAPI.ResourceList.self).whole()
    }

    /// `POST /v1/resources` with the content as the body. Answers when the receiver has the content; with `queue`, or for a group, when the
    /// daemon has it. The transfer moves at most `limit` bytes per second. `pin` is that of a LocalSend device.
    public func sendResource(
        to recipient: ControlAPI.ResourceRecipient, name: String, kind: ControlAPI.Resource.Kind = .file, size: Int64,
        content: AsyncStreamOfBytes,
        digest: ControlAPI.Resource.Digest? = nil, limit: UInt64? = nil, queue: Bool = false,
        attributes: ControlAPI.FileAttributes? = nil, pin: String? = nil
    ) async throws(ControlError) -> ControlReply<ControlAPI.ResourceList> {
        var query = [recipient.query, ("name", name), ("size", "\(size)")]
        if kind != .file { query.append(("kind", kind.rawValue)) }
        if let digest { query.append(("digest", digest.rawValue)) }
        if let limit { query.append(("limit", "\(limit)")) }
        if queue { query.append(("queue", "true")) }
        if let pin { query.append(("pin", pin)) }
        if let attributes {
            query.append(("modified", "\(attributes.modified)"))
            if attributes.isExecutable { query.append(("executable", "true")) }
            if attributes.hasHoles { query.append(("holes", "true")) }
        }
        let path = ControlPath.path(["resources"], query: query)
        return try await self.call(.POST, path, body: .stream(content, length: size), as: ControlAPI.ResourceList.self).whole()
    }

    /// `GET /v1/resources`: all transfers, or those of one group.
    public func resources(in group: (any GroupReference)? = nil) async throws(ControlError) -> ControlReply<ControlAPI.ResourceList> {
        try await self.call(.GET, ControlPath.path(["resources"], query: [("group", group?.description)]), as: ControlAPI.ResourceList.self)
    }

    /// `GET /v1/resources/{id}`
    public func resource(_ id: ResourceID) async throws(ControlError) -> ControlReply<ControlAPI.Resource> {
        try await self.call(.GET, ControlPath.path(["resources", id.description]), as: ControlAPI.Resource.self)
    }

    /// `GET /v1/resources/{id}` with the share id of a resource that was sent to a group.
    public func share(_ id: ShareID) async throws(ControlError) -> ControlReply<ControlAPI.ResourceList> {
        try await self.call(.GET, ControlPath.path(["resources", id.description]), as: ControlAPI.ResourceList.self)
    }

    /// `POST /v1/resources/{id}/response`
    @discardableResult
    public func respond(
        toOffer id: ResourceID, _ decision: ControlAPI.ResourceResponse.Decision
    ) async throws(ControlError) -> ControlReply<ControlAPI.Resource> {
        let body = try Self.json(ControlAPI.ResourceResponse(decision: .known(decision)))
        return try await self.call(
            .POST, ControlPath.path(["resources", id.description, "response"]), body: body, as: ControlAPI.Resource.self)
    }

    /// `GET /v1/resources/{id}/content`. A directory is returned as a tar archive, or with `asTree` in the protocol's own format.
    public func content(of id: ResourceID, asTree: Bool = false) async throws(ControlError) -> ControlContent {
        let path = ControlPath.path(["resources", id.description, "content"])
        let accept = asTree ? ControlAPI.treeMediaType : "*/*"
        return ControlContent(response: try await self.open(.GET, path, accept: accept), client: self)
    }

    /// `DELETE /v1/resources/{id}/content`: drops the content from the spool and keeps the row.
    public func dropContent(of id: ResourceID) async throws(ControlError) {
        try await self.perform(.DELETE, ControlPath.path(["resources", id.description, "content"]))
    }

    /// `DELETE /v1/resources/{id}`: cancels a transfer in progress, deletes a finished one.
    public func removeResource(_ id: ResourceID) async throws(ControlError) {
        try await self.perform(.DELETE, ControlPath.path(["resources", id.description]))
    }

    /// `DELETE /v1/resources/{id}` with the share id of a resource that was sent to a group: cancels its transfers in progress, or deletes
    /// all of them if none is in progress.
    public func removeShare(_ id: ShareID) async throws(ControlError) {
        try await self.perform(.DELETE, ControlPath.path(["resources", id.description]))
    }

    /// `GET /v1/streams`
    public func streams() async throws(ControlError) -> ControlReply<ControlAPI.StreamList> {
        try await self.call(.GET, ControlPath.path(["streams"]), as: ControlAPI.StreamList.self)
    }

    /// `GET /v1/streams/{id}`
    public func stream(_ id: StreamID) async throws(ControlError) -> ControlReply<ControlAPI.Stream> {
        try await self.call(.GET, ControlPath.path(["streams", id.description]), as: ControlAPI.Stream.self)
    }

    /// `DELETE /v1/streams/{id}`: aborts a stream. A receiver that has read everything but could not store it calls this before its
    /// connection ends.
    public func abortStream(_ id: StreamID) async throws(ControlError) {
        try await self.perform(.DELETE, ControlPath.path(["streams", id.description]))
    }

    /// `GET /v1/events`: the events from now on, or the events after `since` that the daemon still has.
    public func events(since: UInt64? = nil, epoch: String? = nil) async throws(ControlError) -> ControlEvents {
        try await self.events(since: ControlEventPosition(epoch: epoch, sequence: since), resumption: nil)
    }

    /// `GET /v1/events`, resumed after each interruption: a restart of the daemon, or the loss of a reader that was too slow.
    ///
    /// `onInterruption` is called once for each interruption. The reader then reconnects with growing pauses and continues after its last
    /// event. A `gap` names the missed events, and follows every restart. If the daemon is away for longer than `patience`, the reader
    /// throws; without `patience` it waits until its task is cancelled. The first connection is not retried.
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

    /// `GET /v1/metrics`: text in the format of Prometheus.
    public func metrics() async throws(ControlError) -> String {
        let response = try await self.open(.GET, ControlPath.path(["metrics"]), accept: "text/plain", within: Self.patience)
        return String(decoding: try await self.collect(response), as: UTF8.self)
    }

    static func json(_ value: some Encodable) throws(ControlError) -> Body {
        do {
            return .json(try ControlJSON.encode(value))
        } catch {
            throw .malformed("the request cannot be written as JSON: \(error)")
        }
    }
}
