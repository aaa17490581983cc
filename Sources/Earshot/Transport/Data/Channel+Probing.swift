import NIOCore

#if canImport(Glibc)
    import Glibc
#endif

extension Channel {
    /// Has the kernel notice that the path or the other end is gone although nothing is sent, over either transport and also for a thread
    /// that takes the socket over; on the channel's event loop.
    ///
    /// The side that sends need not know by itself: the receiver says on the control connection how to go on.
    func probeSilence() throws {
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
