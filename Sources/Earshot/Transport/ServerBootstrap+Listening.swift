package import Logging
package import NIOCore
package import NIOPosix

#if canImport(Glibc)
    import Glibc
#endif

extension ServerBootstrap {
    /// Creates the bootstrap of a listener for strangers: it pauses when the process has run out of descriptors, and reads little at a time.
    package static func forStrangers(on group: any EventLoopGroup, backlog: Int32, logger: Logger) -> ServerBootstrap {
        ServerBootstrap(group: group)
            .serverChannelOption(.backlog, value: backlog)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .serverChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(
                        AcceptBackOffHandler(delay: TimeAmount(EarshotLimits.acceptBackOff), logger: logger))
                }
            }
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelOption(.recvAllocator, value: Transport.strangersAllocator)
    }

    /// Binds a port on all addresses of IPv6 and IPv4, or of IPv4 alone if this machine has no IPv6. `0` takes any free port.
    package func bindEverywhere(port: Int) async throws -> any Channel {
        do {
            // Given as an address, because the resolver refuses IPv6 while no interface has it.
            return try await self.bind(to: SocketAddress(ipAddress: "::", port: port)).get()
        } catch let error as IOError where error.isOfMissingProtocol {
            return try await self.bind(to: SocketAddress(ipAddress: "0.0.0.0", port: port)).get()
        }
    }
}

extension IOError {
    /// Whether a socket cannot be bound to all addresses because this machine has no IPv6, or no IPv4. The kernel may lack the protocol, or
    /// it may be switched off.
    package var isOfMissingProtocol: Bool { [EAFNOSUPPORT, EADDRNOTAVAIL].contains(self.errnoCode) }
}
