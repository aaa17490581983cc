import NIOEmbedded

extension NIOAsyncTestingEventLoop {
    /// Ends the loop after pending work from other threads. While the loop is closing, it would drop the end of a timer that another
    /// thread has just cancelled, and a promise would leak.
    func end() async {
        await self.run()
        await self.shutdownGracefully()
    }
}
