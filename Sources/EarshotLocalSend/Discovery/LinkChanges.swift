internal import CLinux
import Logging
import NIOCore
import NIOPosix
import Synchronization

#if canImport(Glibc)
    import Glibc
#endif

/// Reports changes of this machine's interfaces and addresses as the kernel announces them (rtnetlink(7)). The messages are not read: they
/// only cause the interfaces to be listed again. While nothing changes, nothing wakes up.
final class LinkChanges: Sendable {
    private struct State {
        var channel: (any Channel)?
        var isStopped = false
    }

    private let loop: any EventLoop
    private let logger: Logger
    private let changed: @Sendable () -> Void
    private let state = Mutex(State())

    /// Creates the reporter. `changed` is called on the loop, some time after the last change of several.
    init(on loop: any EventLoop, logger: Logger, changed: @escaping @Sendable () -> Void) {
        self.loop = loop
        self.logger = logger
        self.changed = changed
    }

    /// Starts reporting. If the kernel refuses, or has dropped messages, this is repeated later.
    func start() {
        guard !self.state.withLock({ $0.isStopped }) else { return }
        let descriptor = earshot_link_changes()
        guard descriptor >= 0 else {
            self.logger.warning(
                "changes of the networks are not noticed for now", metadata: ["error": "\(String(cString: strerror(errno)))"])
            self.restartLater()
            return
        }
        let changed = self.changed
        NIOPipeBootstrap(group: self.loop)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(ChangeHandler(changed)) }
            }
            .takingOwnershipOfDescriptor(input: descriptor)
            .whenComplete { result in
                switch result {
                case .success(let channel):
                    channel.closeFuture.whenComplete { _ in self.restartLater() }
                    let isStopped = self.state.withLock { state in
                        state.channel = channel
                        return state.isStopped
                    }
                    if isStopped { channel.close(promise: nil) }
                case .failure:
                    close(descriptor)
                    self.restartLater()
                }
            }
    }

    func stop() {
        let channel = self.state.withLock { state in
            state.isStopped = true
            return state.channel
        }
        channel?.close(promise: nil)
    }

    private func restartLater() {
        guard !self.state.withLock({ $0.isStopped }) else { return }
        self.loop.scheduleTask(in: LocalSendLimits.linksRetry) {
            self.changed()
            self.start()
        }
    }

    /// Calls back once for all messages of a short time.
    private final class ChangeHandler: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer

        private let changed: @Sendable () -> Void
        private var pending: Scheduled<Void>?

        init(_ changed: @escaping @Sendable () -> Void) { self.changed = changed }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            guard self.pending == nil else { return }
            let this = NIOLoopBound(self, eventLoop: context.eventLoop)
            self.pending = context.eventLoop.scheduleTask(in: LocalSendLimits.linksSettle) {
                this.value.pending = nil
                this.value.changed()
            }
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

        func handlerRemoved(context: ChannelHandlerContext) { self.pending?.cancel() }
    }
}
