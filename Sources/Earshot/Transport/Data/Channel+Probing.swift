package import NIOCore

#if canImport(Glibc)
    import Glibc
#endif

extension Channel {
    /// Makes the kernel detect a broken path or a dead peer although nothing is sent, for either transport and also for a thread that
    /// takes over the socket. Call it on the channel's event loop.
    ///
    /// The sending side need not detect the loss itself: the receiver tells it on the control connection how to continue.
    package func probeSilence() throws {
        guard let options = self.syncOptions else { return }
        let tcp: [(name: CInt, value: Int)] = [
            (TCP_KEEPIDLE, Int(clamping: EarshotLimits.dataProbeAfter.components.seconds)),
            (TCP_KEEPINTVL, Int(clamping: EarshotLimits.dataProbeInterval.components.seconds)),
            (TCP_KEEPCNT, EarshotLimits.dataProbes),
        ]
        for (name, value) in tcp { try options.setOption(.tcpOption(NIOBSDSocket.Option(rawValue: name)), value: value) }
        try options.setOption(.socketOption(.so_keepalive), value: 1)
    }
}
