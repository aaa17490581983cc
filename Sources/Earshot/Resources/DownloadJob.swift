import EarshotCore
import EarshotSafety
import EarshotWire
import NIOCore

/// Writes, checks and saves what one incoming resource consists of, as the core has it do: into the spool under this machine's own id.
struct DownloadJob: Sendable {
    enum Order: Sendable {
        case resume(Spool.Allowance)
        case begin(Spool.Allowance, Publisher.Destination?)
        /// Bytes of the control connection, which reads on once they are dealt with.
        case write(ByteBuffer, at: UInt64, weight: Int, Connection)
        /// `nil` where it is gone already.
        case receive(DataConnection?)
        case settle(ResourceDigest)
        /// What was saved is not to stay; also where the job has been told to stop.
        case removeContent
    }

    let row: Resource
    /// What a file has in the end, where its sender has told that.
    let attributes: FileAttributes?
    let spool: Spool
    let state: TransferMoverState
    let report: @Sendable (TransferReport) -> Void

    /// Follows orders until there are none.
    func run(_ orders: AsyncStream<Order>) async {
        var receiver: DataReceiver?
        var hasFailed = false
        // Nothing that comes behind the end of all is written.
        var hasSettled = false
        for await order in orders {
            if case .write = order, hasSettled {
                await self.drop(order)
                continue
            }
            if case .settle = order { hasSettled = true }
            guard !hasFailed, !self.state.isStopped else {
                await self.drop(order)
                continue
            }
            do throws(EarshotError) {
                try await self.follow(order, &receiver)
            } catch {
                hasFailed = true
                self.report(.failed(TransferFailure(error, told: Refusal(error))))
            }
        }
        // Cancelled, because the node has ended, it leaves what there is to the next start.
        guard self.state.isStopped else { return }
        if self.state.isKept { await self.spool.pause(self.row.id) } else { await self.spool.abandon(self.row.id) }
        self.report(.stopped)
    }

    private func drop(_ order: Order) async {
        switch order {
        case .write(_, _, let weight, let connection): connection.processed(weight)
        case .receive(let data): data?.close()
        case .removeContent: self.report(await self.spool.removal(of: self.row.id, for: nil))
        case .resume, .begin, .settle: break
        }
    }

    private func follow(_ order: Order, _ receiver: inout DataReceiver?) async throws(EarshotError) {
        let id = self.row.id
        switch order {
        case .resume(let allowance):
            let held = try await self.spool.resume(id, size: self.row.size, allowance, attributes: self.attributes, listed: self.listed)
            self.report(.held(held))
        case .begin(let allowance, let destination):
            await self.spool.abandon(id)
            try await self.spool.checkRoom(self.row, allowance, destination)
            _ = try await self.spool.begin(
                id, kind: self.row.kind, size: self.row.size, allowance, attributes: self.attributes, listed: self.listed)
            self.report(.began)
        case .write(let data, let offset, let weight, let connection):
            defer { connection.processed(weight) }
            self.report(.written(to: try await self.spool.write(id, offset: offset, data)))
        case .receive(let data): try await self.receive(data, &receiver)
        case .settle(let digest):
            self.report(.settled(try await self.spool.finish(id, algorithm: digest.algorithm, digest: digest.bytes)))
        case .removeContent: self.report(await self.spool.removal(of: id, for: nil))
        }
    }

    /// Takes what comes over a data connection.
    private func receive(_ data: DataConnection?, _ receiver: inout DataReceiver?) async throws(EarshotError) {
        if receiver == nil { receiver = try DataReceiver(try await self.spool.incoming(self.row.id)) }
        guard let receiver else { return }
        let content = receiver.content
        self.state.counts { content.written }
        if let data {
            let outcome = try await receiver.receive(over: data)
            if case .ended = outcome, content.written < self.row.size {
                throw EarshotError(
                    .protocolViolation, "only \(content.written) of \(self.row.size) bytes arrived; send it again")
            }
        }
        self.report(.dataEnded(at: content.written))
    }

    /// What hears that a directory's list is here, on whatever thread that is.
    private var listed: @Sendable (Int) -> Void {
        { [report] bytes in report(.listed(bytes)) }
    }
}

extension Spool {
    /// Whether a transfer could begin now: here, and where it is to be put.
    /// - Throws: as ``check(_:size:_:)``; `conflict` and the like where the directory of received files cannot take it.
    nonisolated func checkRoom(
        _ row: Resource, _ allowance: Allowance, _ destination: Publisher.Destination?
    ) async throws(EarshotError) {
        if let destination, let name = try? SafeName(row.name) {
            do throws(EarshotError) {
                try await self.settler.check(name, size: row.size, spool: self.directory, destination)
            } catch {
                // A directory that is away now may be back at the end; else the content stays in the spool.
                if error.code != .storage { throw error }
            }
        }
        try await self.check(row.id, size: row.size, allowance)
    }
}
