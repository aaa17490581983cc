import EarshotCore
import EarshotSafety
import EarshotWire
import NIOCore

/// The job that writes, checks and saves one incoming resource, as commanded by the core: into the spool, under this machine's own id.
struct DownloadJob: Sendable {
    enum Order: Sendable {
        case resume(Spool.Allowance)
        case begin(Spool.Allowance, Publisher.Destination?)
        /// Write bytes of the control connection, which continues reading when they are handled.
        case write(ByteBuffer, at: UInt64, weight: Int, Connection)
        /// Receive from a data connection; `nil` if it is already gone.
        case receive(DataConnection?)
        /// Reserve space, and write the body of a device's upload.
        case receiveBody(Spool.Allowance, Publisher.Destination?, BodyFeed)
        case settle(ResourceDigest?)
        /// Remove the saved content, also if the job has been stopped.
        case removeContent
    }

    let row: Resource
    /// The final attributes of a file, if its sender has sent them.
    let attributes: FileAttributes?
    let spool: Spool
    let state: TransferMoverState
    let report: @Sendable (TransferReport) -> Void

    /// Follows orders until there are no more.
    func run(_ orders: AsyncStream<Order>) async {
        var receiver: DataReceiver?
        var hasFailed = false
        // Whether the content is settled. Later bytes are not written.
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
        // If the job was cancelled because the node has ended, its content stays for the next start.
        guard self.state.isStopped else { return }
        if self.state.isKept { await self.spool.pause(self.row.id) } else { await self.spool.abandon(self.row.id) }
        self.report(.stopped)
    }

    private func drop(_ order: Order) async {
        switch order {
        case .write(_, _, let weight, let connection): connection.processed(weight)
        case .receive(let data): data?.close()
        case .removeContent: self.report(await self.spool.removal(of: self.row.id, for: nil))
        case .receiveBody(_, _, let feed): feed.close()
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
            await self.pace(data.readableBytes)
            guard !self.state.isStopped else { return }
            self.report(.written(to: try await self.spool.write(id, offset: offset, data)))
        case .receive(let data): try await self.receive(data, &receiver)
        case .receiveBody(let allowance, let destination, let feed):
            try await self.receive(feed, allowance, destination)
        case .settle(let digest):
            self.report(.settled(try await self.spool.finish(id, algorithm: digest?.algorithm ?? .xxh3, digest: digest?.bytes)))
        case .removeContent: self.report(await self.spool.removal(of: id, for: nil))
        }
    }

    /// Waits as long as bytes from the control connection take at the job's rate. The sender may continue after they are written.
    private func pace(_ count: Int) async {
        let pacer = self.state.pacer
        guard pacer.isPaced else { return }
        let latest = ContinuousClock.now + EarshotLimits.pacedWriteTime
        var left = count
        while left > 0, let room = await pacer.roomAwaited(for: left, until: { self.state.isStopped || .now >= latest }) {
            pacer.moved(room)
            left -= room
        }
    }

    /// Receives bytes over a data connection.
    private func receive(_ data: DataConnection?, _ receiver: inout DataReceiver?) async throws(EarshotError) {
        if receiver == nil { receiver = try DataReceiver(try await self.spool.incoming(self.row.id)) }
        guard let receiver else { return }
        let content = receiver.content
        self.state.counts { content.written }
        if let data {
            let outcome = try await receiver.receive(over: data, at: self.state.pacer)
            if case .ended = outcome, content.written < self.row.size {
                throw EarshotError(
                    .protocolViolation, "only \(content.written) of \(self.row.size) bytes arrived; send it again")
            }
        }
        self.report(.dataEnded(at: content.written))
    }

    /// Receives the body of a device's upload.
    private func receive(
        _ feed: BodyFeed, _ allowance: Spool.Allowance, _ destination: Publisher.Destination?
    ) async throws(EarshotError) {
        let id = self.row.id
        try await self.spool.checkRoom(self.row, allowance, destination)
        var written = try await self.spool.begin(id, size: self.row.size, allowance, attributes: self.attributes)
        self.report(.began)
        while let piece = try await self.next(feed, after: written) {
            await self.pace(piece.readableBytes)
            guard !self.state.isStopped else { return }
            written = try await self.spool.write(id, offset: written, piece)
            self.report(.written(to: written))
        }
        guard written == self.row.size else {
            throw EarshotError(.protocolViolation, "only \(written) of \(self.row.size) bytes arrived; send it again")
        }
        self.report(.bodyEnded)
    }

    private func next(_ feed: BodyFeed, after written: UInt64) async throws(EarshotError) -> ByteBuffer? {
        do throws(EarshotError) {
            return try await feed.next()
        } catch {
            let words = "the upload was cut off after \(written) of \(self.row.size) bytes; send it again"
            throw EarshotError(.unavailable, words, underlying: error)
        }
    }

    /// Reports that a directory's list of entries is complete, on whatever thread calls it.
    private var listed: @Sendable (Int) -> Void {
        { [report] bytes in report(.listed(bytes)) }
    }
}

extension Spool {
    /// Checks whether a transfer could start now, both in the spool and at its destination.
    /// - Throws: as ``check(_:size:_:)``; `conflict` and similar if the directory of received files cannot accept it.
    nonisolated func checkRoom(
        _ row: Resource, _ allowance: Allowance, _ destination: Publisher.Destination?
    ) async throws(EarshotError) {
        if var destination, let name = try? SafeName(row.name) {
            // The folder may not exist yet. A conflict in it appears when the file is published.
            if row.folder != nil { destination = destination.renaming }
            do throws(EarshotError) {
                try await self.settler.check(name, size: row.size, spool: self.directory, destination)
            } catch {
                // A directory that is missing now may be back at the end. If it is not, the content stays in the spool.
                if error.code != .storage { throw error }
            }
        }
        try await self.check(row.id, size: row.size, allowance)
    }
}
