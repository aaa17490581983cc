import EarshotWire
import Logging
import NIOCore
import NIOPosix

#if canImport(Glibc)
    import Glibc
#endif

/// Data connections, dialled and accepted on their own event loops.
extension Transport {
    /// Dials for one ticket, one address after another. When this returns, `attached` has received the connection.
    /// - Throws: The error of the last address.
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

    /// Initialises an accepted connection. While data connections are expected, it probably is one, and moves to their event loops. The
    /// connection's purpose is known only after TLS has begun, and by then its channel cannot move.
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

    /// Configures reads of an attached data connection: pieces of one size, with a check of the reader's room after each. TLS collects
    /// decrypted bytes until then.
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

    /// The extensions in the initiator's hello for this purpose.
    var helloExtensions: [HelloExtension] {
        switch self {
        case .control: [.streamReroute, .groups, .fileAttributes, .replies]
        case .data: [.dataConnection]
        }
    }
}
