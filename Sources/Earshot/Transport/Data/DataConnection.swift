internal import Dispatch
import DequeModule
package import EarshotWire
import Logging
package import NIOCore
import NIOPosix
import NIOSSL
import Synchronization

#if canImport(Glibc)
    import Glibc
#endif

/// A connection that carries the bytes of one transfer in one direction, and ends with them. It is attached by its token, and its peer is
/// proven.
///
/// The connection is on an event loop for data connections, never on that of a control connection. One task writes, or one task reads.
/// `write` returns when there is room, and `read` when there are bytes. A slow end therefore slows the other one down, and at most
/// `EarshotLimits.dataInFlight` bytes wait on either side. For plaintext, a thread may own the socket itself (``takeOver()``).
///
/// If the connection is lost, the current or next call throws `not-connected`. ``close()`` has the same effect, and can be called from any
/// thread.
package final class DataConnection: Sendable {
    private enum Link {
        case channel
        case socket(DataSocket)
        case closed
    }

    private struct Writing {
        var inFlight = 0
        /// Whether the last frame has been written. After that, the other side may close.
        var isEnding = false
        var isClosed = false
        var isLost = false
        /// The writers that wait for room. All of them are woken, and each checks again.
        var waiters: [@Sendable () -> Void] = []

        mutating func takeWaiters() -> [@Sendable () -> Void] {
            defer { self.waiters = [] }
            return self.waiters
        }
    }

    /// The peer at the other end.
    package let peer: ProvenPeer
    /// The transfer of the bytes.
    package let transfer: TransferID
    private let channel: any Channel
    private let handler: NIOLoopBound<DataHandler>
    private let inbox: DataInbox
    private let link = Mutex(Link.channel)
    private let writing = Mutex(Writing())

    /// The error of calls after the connection is lost.
    static var lost: EarshotError { EarshotError(.notConnected, "the data connection was lost") }

    /// Adds its handler behind `predecessor`, which will be removed. Call it on the channel's event loop.
    init(_ channel: any Channel, behind predecessor: any ChannelHandler, peer: ProvenPeer, transfer: TransferID, logger: Logger) throws {
        try channel.probeSilence()
        self.channel = channel
        self.peer = peer
        self.transfer = transfer
        self.inbox = DataInbox(limit: EarshotLimits.dataInFlight)
        let handler = DataHandler(inbox: self.inbox, logger: logger)
        self.handler = NIOLoopBound(handler, eventLoop: channel.eventLoop)
        try channel.pipeline.syncOperations.addHandler(handler, position: .after(predecessor))
        channel.closeFuture.whenComplete { _ in self.lostWriting() }
    }

    // MARK: Reading

    /// Waits for the next bytes and returns them; `nil` when the other side has sent all its bytes on this connection.
    /// - Throws: `not-connected` if the connection is lost before that, `protocol-violation`.
    package func read() async throws(EarshotError) -> ByteBuffer? {
        try await self.inbox.next { self.resumeReading() }
    }

    /// Returns the next bytes on a thread of its own, which blocks.
    func readBlocking() throws(EarshotError) -> ByteBuffer? {
        try self.inbox.nextBlocking { self.resumeReading() }
    }

    private func resumeReading() {
        self.channel.eventLoop.execute {
            let handler = self.handler.value
            guard let context = try? self.channel.pipeline.syncOperations.context(handler: handler) else { return }
            handler.resume(context: context)
        }
    }

    /// Returns memory from ``read()`` that its caller no longer needs. It is used again.
    package func giveBack(_ bytes: consuming ByteBuffer) {
        self.inbox.giveBack(bytes)
    }

    // MARK: Writing

    /// Sends bytes in as many frames as necessary, and returns when there is room for more.
    /// - Throws: `not-connected` if the connection is lost. Bytes that were written before may be lost with it.
    package func write(_ bytes: ByteBuffer) async throws(EarshotError) {
        var rest = bytes
        while let slice = rest.readSlice(length: min(rest.readableBytes, WireLimits.dataFrame)), slice.readableBytes > 0 {
            try await self.write(.data(count: slice.readableBytes), slice)
        }
    }

    /// Sends bytes on a thread of its own, which blocks.
    func writeBlocking(_ bytes: ByteBuffer) throws(EarshotError) {
        var rest = bytes
        while let slice = rest.readSlice(length: min(rest.readableBytes, WireLimits.dataFrame)), slice.readableBytes > 0 {
            self.begin(.data(count: slice.readableBytes), slice)
            let semaphore = DispatchSemaphore(value: 0)
            self.wait(below: EarshotLimits.dataInFlight) { semaphore.signal() }
            semaphore.wait()
            try self.checkWriting()
        }
    }

    private func write(_ frame: DataFrame, _ bytes: ByteBuffer) async throws(EarshotError) {
        self.begin(frame, bytes)
        try await self.room(below: EarshotLimits.dataInFlight)
    }

    private func begin(_ frame: DataFrame, _ bytes: ByteBuffer) {
        var header = self.channel.allocator.buffer(capacity: WireLimits.frameHeaderLength)
        frame.encode(into: &header)
        let weight = header.readableBytes + bytes.readableBytes
        let written = self.channel.eventLoop.makePromise(of: Void.self)
        written.futureResult.whenComplete { result in
            if case .failure = result { self.lostWriting() } else { self.wrote(weight) }
        }
        self.writing.withLock { writing in
            writing.inFlight += weight
            writing.isEnding = frame == .end
        }
        let head = header
        self.channel.eventLoop.execute {
            let pipeline = self.channel.pipeline.syncOperations
            pipeline.write(NIOAny(head), promise: bytes.readableBytes > 0 ? nil : written)
            if bytes.readableBytes > 0 { pipeline.write(NIOAny(bytes), promise: written) }
            pipeline.flush()
        }
    }

    private func room(below limit: Int) async throws(EarshotError) {
        await withCheckedContinuation { continuation in self.wait(below: limit) { continuation.resume() } }
        try self.checkWriting()
    }

    private func checkWriting() throws(EarshotError) {
        guard !self.writing.withLock({ $0.isLost }) else { throw Self.lost }
    }

    /// Calls `wake` once, when fewer than `limit` bytes are in flight or the connection is closed. That may be immediately.
    private func wait(below limit: Int, _ wake: @escaping @Sendable () -> Void) {
        let isWaiting = self.writing.withLock { writing in
            guard !writing.isClosed, writing.inFlight >= limit else { return false }
            writing.waiters.append(wake)
            return true
        }
        if !isWaiting { wake() }
    }

    private func wrote(_ weight: Int) {
        let waiters = self.writing.withLock { writing -> [@Sendable () -> Void] in
            writing.inFlight -= weight
            return writing.inFlight < EarshotLimits.dataInFlight ? writing.takeWaiters() : []
        }
        for wake in waiters { wake() }
    }

    private func lostWriting() {
        let waiters = self.writing.withLock { writing -> [@Sendable () -> Void] in
            writing.isClosed = true
            if !writing.isEnding || writing.inFlight > 0 { writing.isLost = true }
            return writing.takeWaiters()
        }
        for wake in waiters { wake() }
    }

    /// Sends the last frame, and returns when the other side has closed, or after `EarshotLimits.dataEndTime`.
    /// - Throws: `not-connected` if the connection is lost before the kernel has accepted all bytes.
    package func finish() async throws(EarshotError) {
        try await self.write(.end, ByteBuffer())
        while self.writing.withLock({ $0.inFlight > 0 && !$0.isClosed }) { try await self.room(below: 1) }
        let deadline = self.channel.eventLoop.scheduleTask(in: TimeAmount(EarshotLimits.dataEndTime)) {
            self.channel.close(mode: .all, promise: nil)
        }
        try? await self.channel.closeFuture.get()
        deadline.cancel()
    }

    // MARK: Taking over

    /// Returns the socket itself, for a thread that blocks on it, before anything is written or read. Returns `nil` over TLS, if the
    /// connection has ended, or if there is no free descriptor. The received bytes and the reason of the end are then read as over TLS.
    func takeOver() async -> DataSocketReader? {
        guard self.peer.transport == .plaintext else { return nil }
        return try? await self.channel.eventLoop.submit { try self.detach() }.get()
    }

    private func detach() throws -> DataSocketReader {
        let pipeline = self.channel.pipeline.syncOperations
        let descriptor = try pipeline.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) { fcntl($0, F_DUPFD_CLOEXEC, 0) } ?? -1
        guard descriptor >= 0 else { throw Self.lost }
        let socket = DataSocket(descriptor: descriptor)
        let isOpen = self.link.withLock { link in
            guard case .channel = link else { return false }
            link = .socket(socket)
            return true
        }
        guard isOpen else { throw Self.lost }
        let decoder = self.handler.value.detach()
        let (pieces, end) = self.inbox.takeAll()
        // Closes the channel's own descriptor. The duplicate keeps the connection open.
        self.channel.close(mode: .all, promise: nil)
        return DataSocketReader(socket: socket, decoder: decoder, pieces: Deque(pieces), end: end)
    }

    // MARK: End

    /// Whether ``close()`` was called. The kernel may still have bytes of the connection for its reader.
    var isClosed: Bool { self.link.withLock { if case .closed = $0 { true } else { false } } }

    /// Ends the connection immediately, from any thread. Current calls throw. A second call has no effect.
    package func close() {
        let link = self.link.withLock { link in
            defer { link = .closed }
            return link
        }
        switch link {
        case .channel:
            self.channel.eventLoop.execute {
                self.inbox.end(.failure(Self.lost))
                self.channel.closeWithoutGoodbye()
            }
        case .socket(let socket): socket.interrupt()
        case .closed: break
        }
    }
}

extension Channel {
    /// Closes the channel below TLS, on the event loop. TLS's close notification would wait for a peer that does not read or answer.
    package func closeWithoutGoodbye() {
        let pipeline = self.pipeline.syncOperations
        if let server = try? pipeline.context(handlerType: NIOSSLServerHandler.self) {
            server.close(mode: .all, promise: nil)
        } else if let client = try? pipeline.context(handlerType: NIOSSLClientHandler.self) {
            client.close(mode: .all, promise: nil)
        } else {
            self.close(mode: .all, promise: nil)
        }
    }
}
