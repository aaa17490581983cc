import EarshotWire
import NIOCore

/// Unreliable messages beside the frames: by the hundred in one read and in one write.
extension ConnectionHandler {
    /// Unreliable messages that follow each other, which come by the hundred, until there are about so many.
    func takeUnreliable(upTo count: Int) -> [MessageFrame] {
        guard self.machine?.state.hearsUnreliable == true else { return [] }
        var messages: [MessageFrame] = []
        while messages.count < count {
            let run = self.decoder.takeUnreliable()
            guard !run.isEmpty else { return messages }
            messages += run
        }
        return messages
    }

    func emit(_ messages: [MessageFrame]) {
        guard case .proven(let connection) = self.state else { return }
        let weight = messages.reduce(0) { $0 + Frame.weight(ofBody: $1.body.readableBytes) }
        connection.turns.begin(weight: weight)
        self.settings.emit(.receivedUnreliable(connection, messages, weight: weight))
    }

    /// Unreliable messages that are encoded already.
    func writeUnreliable(_ messages: ByteBuffer, context: ChannelHandlerContext, promise: EventLoopPromise<Void>?) {
        guard case .proven = self.state, self.machine?.state.saysUnreliable == true else {
            promise?.fail(ChannelError.ioOnClosedChannel)
            return
        }
        self.writer.write(messages, own: messages.readableBytes, context: context, promise: promise)
        context.flush()
        self.boundUnread(context: context)
    }
}
