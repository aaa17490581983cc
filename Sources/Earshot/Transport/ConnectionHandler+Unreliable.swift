import EarshotWire
import NIOCore

/// Unreliable messages beside the frames: hundreds in one read and in one write.
extension ConnectionHandler {
    /// Decodes consecutive unreliable messages, up to about `count`.
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

    /// Writes unreliable messages that are already encoded.
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
