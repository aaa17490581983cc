import DequeModule
import EarshotCore
import EarshotSafety
import EarshotWire
import NIOCore

/// The job that reads, digests and sends one outgoing resource, as commanded by the core.
struct UploadJob: Sendable {
    enum Order: Sendable {
        case compare(UInt64)
        case send(from: UInt64, upTo: UInt64, on: Connection)
        case sendOverData(from: UInt64, DataConnection)
        case digest(ResourceEnd.DigestAlgorithm)
    }

    let row: Resource
    let source: StoredTransfer.Source
    /// The file that the caller holds open, if that is the source.
    let held: HeldFile?
    let spool: Spool
    let state: TransferMoverState
    let report: @Sendable (TransferReport) -> Void

    /// Opens the source, unless it is already open, and follows orders until there are no more.
    func run(_ orders: AsyncStream<Order>, _ opened: OpenedContent.Content?) async {
        do throws(EarshotError) {
            let content = try await self.content(opened)
            self.report(.opened(content.source.map { OpenedSource(size: $0.size, stamp: $0.stamp, attributes: $0.attributes) }))
            var writes: Deque<EventLoopFuture<Void>> = []
            for await order in orders where !self.state.isStopped {
                // If the connection is lost, the core ends this job.
                guard try await self.follow(order, content, &writes) else { break }
            }
        } catch {
            self.report(.failed(TransferFailure(error, told: Refusal(error))))
        }
        for await _ in orders {}
        self.report(.stopped)
    }

    /// Executes an order. Returns `false` if the control connection accepts no more bytes.
    private func follow(
        _ order: Order, _ content: any OutgoingContent, _ writes: inout Deque<EventLoopFuture<Void>>
    ) async throws(EarshotError) -> Bool {
        switch order {
        case .compare(let count): self.report(.compared(try await content.prefixDigest(count)))
        case .send(let start, let end, let connection):
            return try await self.send(content, from: start, upTo: end, on: connection, &writes)
        case .sendOverData(let offset, let data):
            let sent = TransferCount(offset)
            self.state.counts { sent.value }
            // If the data connection is lost, the receiver decides how to continue.
            _ = try await content.send(from: offset, over: data, counting: sent, at: self.state.pacer)
            self.report(.dataSent(to: sent.value))
        case .digest(let algorithm): self.report(.digested(try await content.finish(algorithm)))
        }
        return true
    }

    private func send(
        _ content: any OutgoingContent, from start: UInt64, upTo end: UInt64, on connection: Connection,
        _ writes: inout Deque<EventLoopFuture<Void>>
    ) async throws(EarshotError) -> Bool {
        var offset = start
        while offset < end, !self.state.isStopped {
            let wanted = Int(min(UInt64(WireLimits.chunkData), end - offset))
            guard let room = await self.state.pacer.roomAwaited(for: wanted, until: { self.state.isStopped }) else { break }
            let data = try await content.read(at: offset, count: room)
            guard !self.state.isStopped else { break }
            guard data.readableBytes > 0 else {
                throw EarshotError(.sourceChanged, "\(self.row.name) became shorter while it was sent; send it again")
            }
            writes.append(connection.write([.resource(.chunk(ResourceChunk(id: self.row.id, offset: offset, data: data)))]))
            offset += UInt64(data.readableBytes)
            self.state.pacer.moved(data.readableBytes)
            // A few writes ahead of the kernel keep both disk and network busy, without filling the memory.
            if writes.count >= 4, let oldest = writes.popFirst() {
                do { try await oldest.get() } catch { return false }
            }
            self.report(.sent(to: offset))
        }
        return true
    }

    func content(_ opened: OpenedContent.Content?) async throws(EarshotError) -> any OutgoingContent {
        switch opened {
        case .source(let source)?: return try SourceContent(source)
        case .body(let body)?: return body
        case nil: return try await self.open()
        }
    }

    /// Opens the source in its current state, for a transfer that is resumed, starts late, or shares its source with another one.
    private func open() async throws(EarshotError) -> any OutgoingContent {
        switch self.source {
        case .path:
            guard let path = self.row.path else { break }
            let opened = try await SourceOpening.open(.path(path))
            guard opened.kind == self.row.kind else {
                throw EarshotError(.sourceChanged, "\(path.escapedForDisplay) is no \(self.row.kind.rawValue) any more; send it again")
            }
            return try SourceContent(opened.source)
        case .spool: return try SourceContent(try await self.spool.outgoingSource(self.row.id))
        case .held:
            guard let held = self.held else { break }
            return try SourceContent(try await SourceOpening.open(.file(held)).source)
        case .body, .none: break
        }
        throw EarshotError(.unavailable, "a body that was streamed in cannot be read twice; send it again")
    }
}
