import NIOCore
import NIOPosix
import Testing

@testable import Earshot

#if canImport(Glibc)
    import Glibc
#endif

/// The times at which the kernel probes the other end of a data connection. The kernel itself does the probing.
@Suite struct DataProbeTests {
    @Test func theKernelProbesSilentDataConnections() async throws {
        let group = MultiThreadedEventLoopGroup.singleton
        let listener = try await ServerBootstrap(group: group).bind(host: "127.0.0.1", port: 0).get()
        let channel = try await ClientBootstrap(group: group).connect(to: try #require(listener.localAddress)).get()
        let told = try await channel.eventLoop.submit { () throws -> [Int] in
            try channel.probeSilence()
            guard let options = channel.syncOptions else { return [] }
            let probing = try options.getOption(.socketOption(.so_keepalive))
            return try [TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_KEEPCNT].map {
                Int(try options.getOption(.tcpOption(NIOBSDSocket.Option(rawValue: $0))))
            } + [Int(probing)]
        }.get()
        let (after, interval) = (EarshotLimits.dataProbeAfter, EarshotLimits.dataProbeInterval)
        #expect(told.prefix(2).map { Duration.seconds($0) } == [after, interval], "no part of a second is lost")
        #expect(told.dropFirst(2) == [EarshotLimits.dataProbes, 1])
        #expect(after + interval * EarshotLimits.dataProbes < EarshotLimits.resourceStallTime, "before the transfer is given up")
        try await channel.close()
        try await listener.close()
    }
}
