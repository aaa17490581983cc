import DequeModule
import EarshotCore
import EarshotSafety
import EarshotWire
import NIOCore

/// Reads, digests and sends what one outgoing resource consists of, as the core has it do.
struct UploadJob: Sendable {
    enum Order: Sendable {
        case compare(UInt64)
        case send(from: UInt64, upTo: UInt64, on: Connection)
        case sendOverData(from: UInt64, DataConnection)
        case digest(ResourceEnd.DigestAlgorithm)
    }

    let row: Resource
    let source: StoredTransfer.Source
    let spool: Spool
    let state: TransferMoverState
    let report: @Sendable (TransferReport) -> Void

    /// Opens the source, unless it is open already, and follows orders until there are none.
    func run(_ orders: AsyncStream<Order>, _ opened: OpenedContent.Content?) async {
        do throws(EarshotError) {
            let content = try await self.content(opened)
            self.report(.opened(content.source.map { OpenedSource(size: $0.size, stamp: $0.stamp, attributes: $0.attributes) }))
            var writes: Deque<EventLoopFuture<Void>> = []
            for await order in orders where !self.state.isStopped {
                // A connection that is lost brings the core to end this.
                guard try await self.follow(order, content, &writes) else { break }
            }
        } catch {
            self.report(.failed(TransferFailure(error, told: Refusal(error))))
        }
        for await _ in orders {}
        self.report(.stopped)
    }

    /// `false` where the control connection takes no more.
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
            // Where that is lost, the receiver says how to go on.
            _ = try await content.send(from: offset, over: data, counting: sent)
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
            let data = try await content.read(at: offset, count: Int(min(UInt64(WireLimits.chunkData), end - offset)))
            guard !self.state.isStopped else { break }
            guard data.readableBytes > 0 else {
                throw EarshotError(.sourceChanged, "\(self.row.name) became shorter while it was sent; send it again")
            }
            writes.append(connection.write([.resourceChunk(ResourceChunk(id: self.row.id, offset: offset, data: data))]))
            offset += UInt64(data.readableBytes)
            // A few writes ahead of the kernel keep disk and network busy together, without filling memory.
            if writes.count >= 4, let oldest = writes.popFirst() {
                do { try await oldest.get() } catch { return false }
            }
            self.report(.sent(to: offset))
        }
        return true
    }

    private func content(_ opened: OpenedContent.Content?) async throws(EarshotError) -> any OutgoingContent {
        switch opened {
        case .source(let source)?: return try SourceContent(source)
        case .body(let body)?: return body
        case nil: return try await self.open()
        }
    }

    /// The source of a transfer that goes on, or begins late or beside another one of the same source, as it is now.
    private func open() async throws(EarshotError) -> any OutgoingContent {
        switch self.source {
        case .path:
            guard let path = self.row.path else { break }
            let opened = try await SourceOpening.open(path)
            guard opened.kind == self.row.kind else {
                throw EarshotError(.sourceChanged, "\(path.escapedForDisplay) is no \(self.row.kind.rawValue) any more; send it again")
            }
            return try SourceContent(opened.source)
        case .spool: return try SourceContent(try await self.spool.outgoingSource(self.row.id))
        case .body, .none: break
        }
        throw EarshotError(.unavailable, "a body that was streamed in cannot be read twice; send it again")
    }
}
