import NIOEmbedded

extension NIOAsyncTestingEventLoop {
    /// Ends it, once it has done what other threads have asked of it: a timer that they have just cancelled is one of which the loop drops the
    /// end where it is closing already, and then a promise leaks.
    func end() async {
        await self.run()
        await self.shutdownGracefully()
    }
}
