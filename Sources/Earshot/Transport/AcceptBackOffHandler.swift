package import Logging
package import NIOCore

#if canImport(Glibc)
    import Glibc
#endif

/// Pauses accepting when the process or the machine has run out of descriptors or memory, instead of retrying in a busy loop.
///
/// The handler is in the pipeline of the listening channel, whose `read` accepts connections. Suppressing that `read` is not enough: after
/// a failed accept, the channel still has a pending read and keeps calling the kernel. The handler therefore also switches off automatic
/// reading during the pause.
package final class AcceptBackOffHandler: ChannelDuplexHandler {
    package typealias InboundIn = any Channel
    package typealias OutboundIn = any Channel

    private let delay: TimeAmount
    private let logger: Logger
    private var pause: Scheduled<Void>?
    private var wantsRead = false
    private var warned: NIODeadline?

    package init(delay: TimeAmount, logger: Logger) {
        self.delay = delay
        self.logger = logger
    }

    package func read(context: ChannelHandlerContext) {
        if self.pause == nil {
            context.read()
        } else {
            self.wantsRead = true
        }
    }

    package func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard let error = error as? IOError, [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(error.errnoCode) else {
            // One connection failed while it was being accepted (ECONNABORTED and similar). The listener is not affected.
            return
        }
        guard self.pause == nil else { return }
        let now = context.eventLoop.now
        if self.warned.map({ now - $0 >= TimeAmount(EarshotLimits.acceptWarning) }) ?? true {
            self.logger.warning("cannot accept connections for now", metadata: ["error": "\(error)"])
            self.warned = now
        }
        try? context.channel.syncOptions?.setOption(.autoRead, value: false)
        let context = NIOLoopBound(context, eventLoop: context.eventLoop)
        let handler = NIOLoopBound(self, eventLoop: context.value.eventLoop)
        self.pause = context.value.eventLoop.scheduleTask(in: self.delay) {
            let this = handler.value
            this.pause = nil
            try? context.value.channel.syncOptions?.setOption(.autoRead, value: true)
            guard this.wantsRead else { return }
            this.wantsRead = false
            context.value.read()
        }
    }

    package func handlerRemoved(context: ChannelHandlerContext) {
        self.pause?.cancel()
        self.pause = nil
    }
}
