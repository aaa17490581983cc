import EarshotWire
import Logging
import NIOCore
import NIOPosix

#if canImport(Glibc)
    import Glibc
#endif

/// Data connections: dialled and accepted on event loops of their own.
extension Transport {
    /// Dials for one ticket, address by address; `attached` has the connection when this returns.
    /// - Throws: why the last address failed.
    func dialData(
        _ ticket: DataTicket, to peer: PeerID, over transport: TransportKind, at addresses: [PeerAddress],
        attached: @escaping @Sendable (DataConnection) -> Void
    ) async throws(EarshotError) {
        var failure: EarshotError?
        for address in addresses {
            guard let socketAddress = address.socketAddress else { continue }
            do {
                try await self.dial(transport, for: .data(ticket, attached: attached), expecting: peer, address: address) {
                    $0.connect(to: socketAddress)
                }
                return
            } catch {
                failure = error
            }
        }
        throw failure ?? EarshotError(.unavailable, "no address of the peer is known on this machine's networks")
    }

    /// A connection was accepted. While data connections are expected it probably is one, and moves to their event loops: which it is
    /// shows only once TLS has begun, and a channel stays where its first byte was read.
    func initialiseAccepted(_ channel: any Channel) throws {
        guard self.tickets.isExpecting, let descriptor = try Self.duplicate(channel) else {
            try self.initialiseIncoming(channel)
            return
        }
        let moved = ClientBootstrap(group: self.dataGroup)
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .channelOption(.recvAllocator, value: Self.strangersAllocator)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try self.initialiseIncoming(channel) }
            }
            .withConnectedSocket(descriptor)
        let logger = self.logger
        moved.whenFailure { logger.debug("cannot move an accepted connection", metadata: ["error": "\($0)"]) }
        channel.close(mode: .all, promise: nil)
    }

    /// How an attached data connection is read: in pieces of one size, with a look at their reader's room after each. TLS gathers what was
    /// decrypted until then.
    static func readForData(_ channel: any Channel) { self.read(channel, upTo: EarshotLimits.dataRead) }

    private static func duplicate(_ channel: any Channel) throws -> CInt? {
        let descriptor = try channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) {
            fcntl($0, F_DUPFD_CLOEXEC, 0)
        }
        return descriptor.flatMap { $0 >= 0 ? $0 : nil }
    }
}

extension ConnectionHandler.Purpose {
    var isData: Bool {
        switch self {
        case .control: false
        case .data: true
        }
    }

    /// What the initiator's hello says of it.
    var helloExtensions: [HelloExtension] {
        switch self {
        case .control: [.streamReroute, .groups, .fileAttributes]
        case .data: [.dataConnection]
        }
    }
}
