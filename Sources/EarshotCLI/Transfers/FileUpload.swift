import EarshotClient
import EarshotSafety
import Synchronization

/// Sends one file or directory to its recipients, and follows the transfers until they end or are queued.
struct FileUpload: Sendable {
    let source: LocalSource
    /// The recipients.
    enum Recipients: Sendable {
        case peers([String])
        /// All other members of a group.
        case group(String)

        /// The single named peer, which a failure refers to.
        var only: String? { if case .peers(let peers) = self, peers.count == 1 { peers.first } else { nil } }
    }

    let recipients: Recipients
    let client: ControlClient
    /// The name on the progress line, with the file's number if there are several.
    let title: String
    /// Whether the daemon queues the file for peers that are away.
    let queue: Bool
    /// The digest that the receivers check; `nil` for the default.
    let digest: ControlAPI.Resource.Digest?
    /// The most bytes per second to each recipient; `nil` for no limit.
    let limit: UInt64?
    /// The PIN of a LocalSend device that asks for one.
    let pin: String?

    /// Sends the source, by path if `daemonCanOpen`, and adds each recipient's result as soon as it is known. Results before an error
    /// remain.
    ///
    /// With `queue`, the daemon receives the bytes and has its own copy when this method returns; the source may then be deleted.
    func send(daemonCanOpen: Bool, into results: inout [Result]) async throws {
        guard daemonCanOpen, !self.queue, let path = self.source.pathForDaemon else { return try await self.byContent(into: &results) }
        do {
            results += try await self.byPath(path)
        } catch ControlError.problem(let problem) where problem.code == .invalidSource {
            // The daemon sees other mounts, and so another file or none at this path. A file that cannot be sent at all fails here too.
            try await self.byContent(into: &results)
        } catch let error as ControlError {
            throw CommandFailure(error, peer: self.recipients.only)
        }
    }

    /// Sends by path: the daemon opens the file. A signal cancels the transfer.
    private func byPath(_ path: String) async throws -> [Result] {
        let (peers, group): ([String]?, String?) =
            switch self.recipients {
            case .peers(let peers): (peers, nil)
            case .group(let group): (nil, group)
            }
        let request = ControlAPI.ResourceRequest(
            to: peers, group: group, path: path, name: self.source.name, device: self.source.device, inode: self.source.inode,
            digest: self.digest.map { .known($0) }, limit: self.limit, pin: self.pin)
        let rows = TransferRows()
        return try await self.takingBack(rows) {
            // Subscribes first, so that it does not miss the end of a short transfer.
            let events = try await self.client.watch(patience: TransferFollower.daemonPatience)
            try await rows.make { try await self.client.sendResource(request).resources }
            return try await self.follow(rows, events)
        }
    }

    private func follow(_ rows: TransferRows, _ events: ControlEvents) async throws -> [Result] {
        let follower = TransferFollower(name: self.title, client: self.client, rows: rows, leavesWaiting: self.queue)
        try await follower.follow(events)
        return rows.all.map { Result($0, mayWait: self.queue) }
    }

    private func takingBack(
        _ rows: TransferRows, _ operation: @escaping @Sendable () async throws -> [Result]
    ) async throws -> [Result] {
        try await Interrupts.takingBack {
            guard !self.queue else { return }
            try await Self.cancel(rows.runningOnceKnown(), self.client)
        } _: {
            try await operation()
        }
    }

    /// Cancels as many of the transfers as possible.
    /// - Throws: the last error that left a transfer running. If the daemon is away, for example, it resumes the transfer when it returns.
    static func cancel(_ rows: [ControlAPI.Resource], _ client: ControlClient) async throws(ControlError) {
        var failure: ControlError?
        for row in rows {
            do throws(ControlError) {
                try await client.removeResource(row.id)
            } catch {
                switch error {
                // The transfer no longer exists.
                case .problem(let problem) where problem.code == .notFound: break
                // The follower saw the transfer end first, and no longer waits for this answer.
                case .cancelled: break
                case .unreachable, .silent, .lost, .problem, .malformed, .source, .output: failure = error
                }
            }
        }
        if let failure { throw failure }
    }

    /// Sends to a daemon that runs as another user, for one recipient after the other; for a group, once. A signal closes the
    /// connection and so cancels the transfer, unless the daemon already has all bytes. Adds each recipient's result as soon as it is
    /// known.
    private func byContent(into results: inout [Result]) async throws {
        let peers: [String]
        switch self.recipients {
        case .peers(let named): peers = named
        case .group(let group): return results += try await self.keepContent(for: .group(group))
        }
        for recipient in peers {
            do {
                results += try await self.queue ? self.keepContent(for: .peer(recipient)) : self.send(to: recipient)
            } catch ControlError.problem(let problem) {
                results.append(Result(recipient: recipient, failure: CommandFailure(.problem(problem), peer: recipient)))
            }
        }
    }

    /// Sends a source that the daemon stores before it sends it.
    private func keepContent(for recipient: ControlAPI.ResourceRecipient) async throws -> [Result] {
        let rows = TransferRows()
        return try await self.takingBack(rows) {
            let events = try await self.client.watch(patience: TransferFollower.daemonPatience)
            try await rows.make {
                try await self.passing {
                    let file = try self.source.openFile()
                    return try await self.client.sendFile(
                        file.descriptor, to: recipient, name: self.source.name, digest: self.digest, limit: self.limit, queue: self.queue,
                        pin: self.pin)
                } orBytes: {
                    let (size, bytes, attributes) = try self.content()
                    return try await self.client.sendResource(
                        to: recipient, name: self.source.name, kind: self.source.kind, size: size, content: bytes, digest: self.digest,
                        limit: self.limit, queue: self.queue, attributes: attributes, pin: self.pin
                    ).value
                }.resources
            }
            return try await self.follow(rows, events)
        }
    }

    /// Passes the open file to the daemon; sends the bytes of any other source, and to a daemon that takes no descriptor or that a relay
    /// keeps it from.
    private func passing<Value>(_ pass: () async throws -> Value, orBytes send: () async throws -> Value) async throws -> Value {
        guard self.source.isPassable else { return try await send() }
        do {
            return try await pass()
        } catch ControlError.problem(let problem) where problem.status == 411 || problem.code == .known(.invalidParameter) {
            return try await send()
        }
    }

    private func send(to recipient: String) async throws -> [Result] {
        try await self.passing {
            try await self.passFile(to: recipient)
        } orBytes: {
            [try await self.upload(to: recipient)]
        }
    }

    /// Passes the open file to the daemon, and follows the transfer, which resumes after a lost connection. A signal cancels it.
    private func passFile(to recipient: String) async throws -> [Result] {
        let file = try self.source.openFile()
        let rows = TransferRows()
        return try await self.takingBack(rows) {
            let events = try await self.client.watch(patience: TransferFollower.daemonPatience)
            let (first, teller) = AsyncStream.makeStream(of: ControlAPI.Resource.self, bufferingPolicy: .bufferingOldest(1))
            let call = Task {
                defer { teller.finish() }
                return try await self.client.sendFile(
                    file.descriptor, to: .peer(recipient), name: self.source.name, digest: self.digest, limit: self.limit,
                    pin: self.pin
                ) { teller.yield($0) }
            }
            defer { call.cancel() }
            try await rows.make {
                for await row in first { return [row] }
                return try await call.value.resources
            }
            return try await self.follow(rows, events)
        }
    }

    private func upload(to recipient: String) async throws -> Result {
        let (size, bytes, attributes) = try self.content()
        let name = self.source.name
        if let peer = try? await self.client.peer(recipient).value { TransferFollower.sayThatItWaits(name, for: peer) }
        let answer = try await TransferFollower.sayingWhoIsAwaited(name) {
            await self.awaited()
        } _: {
            try await self.client.sendResource(
                to: .peer(recipient), name: name, kind: self.source.kind, size: size, content: bytes, digest: self.digest,
                limit: self.limit, attributes: attributes, pin: self.pin)
        }
        guard let resource = answer.value.resources.first else {
            throw ControlError.malformed("the daemon's answer names no resource")
        }
        return Result(resource, mayWait: false)
    }

    /// The peer that has been offered the file and has not answered. The transfer's id is not known yet: the newest transfer of that name
    /// is this one.
    private func awaited() async -> [String] {
        let name = self.source.name
        let resources = (try? await self.client.resources().resources) ?? []
        let row = resources.last { $0.direction == .outgoing && $0.state == .offered && $0.name.hasBytes(of: name) }
        // A peer that is not connected has received no offer.
        guard let row, let peer = try? await self.client.peer(row.peerID).value, peer.state == .connected else { return [] }
        return [row.peerName]
    }

    /// The size, a file's attributes, and the bytes. Reading the bytes draws the progress line, since the daemon accepts them at the peer's
    /// pace.
    private func content() throws -> (size: Int64, bytes: AsyncStreamOfBytes, attributes: ControlAPI.FileAttributes?) {
        let shown = Mutex<ContinuousClock.Instant?>(nil)
        let size = Mutex<UInt64>(0)
        let start = ContinuousClock.now
        let (total, bytes, attributes) = try self.source.content { read in
            let now = ContinuousClock.now
            let isDue = shown.withLock { last in
                guard last.map({ now - $0 > .milliseconds(100) }) ?? true else { return false }
                last = now
                return true
            }
            guard isDue else { return }
            let seconds = (now - start) / .seconds(1)
            let rate = seconds > 0.2 ? UInt64(Double(read) / seconds) : 0
            ProgressLine.draw(name: self.title, transferred: read, size: size.withLock { $0 }, rate: rate)
        }
        size.withLock { $0 = total }
        guard let length = Int64(exactly: total) else { throw CommandFailure(.data, "\(self.source.path.escapedForDisplay) is too large") }
        return (length, bytes, attributes.map(ControlAPI.FileAttributes.init))
    }
}
