internal import Earshot
internal import EarshotSafety
internal import NIOCore
internal import NIOPosix

#if canImport(Glibc)
    internal import Glibc
#endif

/// The body of an answer, chunked (RFC 9112 section 7.1). The kernel moves the bytes to the client, without the event loop.
extension StreamOutlet {
    /// Returns an outlet for a connection whose answer has begun, or `nil` if the channel is not a socket.
    static func of(_ channel: any Channel) async throws -> StreamOutlet? {
        let descriptor = try await channel.eventLoop.submit {
            let pipeline = channel.pipeline.syncOperations
            return try pipeline.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) { fcntl($0, F_DUPFD_CLOEXEC, 0) }
        }.get()
        guard let descriptor, descriptor >= 0 else { return nil }
        // The most that the kernel gives to an unprivileged process, so that the two sides switch less often.
        var size: CInt = 1024 * 1024
        setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &size, socklen_t(MemoryLayout<CInt>.size))
        let output = try PassedDescriptor(OpenFile(descriptor: descriptor, subject: "the connection"))
        return StreamOutlet(output, head: { "\(String($0, radix: 16))\r\n" }, tail: "\r\n")
    }
}
