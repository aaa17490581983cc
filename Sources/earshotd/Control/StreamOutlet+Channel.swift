internal import Earshot
internal import NIOCore
internal import NIOPosix

#if canImport(Glibc)
    internal import Glibc
#endif

/// The body of an answer, chunked (RFC 9112 section 7.1), past the event loop: the kernel moves the bytes to the client.
extension StreamOutlet {
    /// For a connection whose answer has begun; `nil` where its channel is no socket.
    static func of(_ channel: any Channel) async throws -> StreamOutlet? {
        let descriptor = try await channel.eventLoop.submit {
            let pipeline = channel.pipeline.syncOperations
            return try pipeline.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) { fcntl($0, F_DUPFD_CLOEXEC, 0) }
        }.get()
        guard let descriptor, descriptor >= 0 else { return nil }
        // As much as the kernel gives to an unprivileged process, so that both sides switch less often.
        var size: CInt = 1024 * 1024
        setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &size, socklen_t(MemoryLayout<CInt>.size))
        return StreamOutlet(descriptor: descriptor, head: { "\(String($0, radix: 16))\r\n" }, tail: "\r\n")
    }

    /// Waits until the kernel has all that was written to the channel.
    static func flush(_ channel: any Channel) async throws {
        try await channel.eventLoop.flatSubmit {
            let written = channel.eventLoop.makePromise(of: Void.self)
            do {
                // In front of all that encodes: nothing, which is written when everything before it was.
                let context = try channel.pipeline.syncOperations.context(handlerType: InputEndHandler.self)
                context.writeAndFlush(NIOAny(ByteBuffer()), promise: written)
            } catch {
                written.fail(error)
            }
            return written.futureResult
        }.get()
    }
}
