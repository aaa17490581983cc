import NIOCore
import NIOPosix
import Testing

@testable import Earshot

/// The read size of an attached data connection, which determines the memory of a transfer.
@Suite struct DataReadTests {
    @Test(arguments: [(EarshotLimits.dataRead, true), (EarshotLimits.messagesRead, false)])
    func anAttachedConnectionIsReadInSmallPiecesOneByOne(limit: Int, isForData: Bool) async throws {
        let group = MultiThreadedEventLoopGroup.singleton
        let server = try await ServerBootstrap(group: group).bind(to: SocketAddress(ipAddress: "127.0.0.1", port: 0)).get()
        let channel = try await ClientBootstrap(group: group)
            .channelOption(.recvAllocator, value: Transport.strangersAllocator)
            .connect(to: #require(server.localAddress)).get()
        let (most, reads) = try await channel.eventLoop.submit {
            if isForData { Transport.readForData(channel) } else { Transport.readForMessages(channel) }
            let options = try #require(channel.syncOptions)
            let allocator = try #require(try options.getOption(.recvAllocator) as? AdaptiveRecvByteBufferAllocator)
            return (allocator.maximum, try options.getOption(.maxMessagesPerRead))
        }.get()
        #expect(most == limit)
        #expect(reads == 1)
        try await channel.close()
        try await server.close()
    }
}
