import EarshotWire
import NIOCore

/// Liveness: a silent connection is pinged, and closed if it does not answer.
extension ConnectionHandler {
    func startHeartbeat(context: ChannelHandlerContext) {
        self.signsOfLife = SignsOfLife(at: context.eventLoop.now)
        self.lookForLife(in: TimeAmount(EarshotLimits.pingAfter), context: context)
    }

    private func lookForLife(in time: TimeAmount, context: ChannelHandlerContext) {
        let loopBound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        self.heartbeatTask = context.eventLoop.scheduleTask(in: time) {
            let (this, context) = loopBound.value
            this.checkLife(context: context)
        }
    }

    /// Handles progress of the socket's pending output. While reading is suspended because of that output, its progress is the only sign
    /// that the other side is alive.
    func wasTaken(context: ChannelHandlerContext) {
        if self.wantsRead { self.signsOfLife?.heard(at: context.eventLoop.now) }
        self.resumeReading(context: context)
    }

    private func checkLife(context: ChannelHandlerContext) {
        guard !self.writer.isGivenUp(on: context.eventLoop) else { return self.giveUp(context: context) }
        guard let (verdict, next) = self.signsOfLife?.check(at: context.eventLoop.now, isBehind: self.isStalled) else { return }
        if verdict != .dead { self.lookForLife(in: next, context: context) }
        switch verdict {
        case .alive: break
        case .ask(let value): self.write([.ping(value)], context: context)
        case .dead: self.giveUp(context: context)
        }
    }

    /// Sends a ping for a user.
    func ping(_ answer: EventLoopPromise<Int64>, taken: EventLoopPromise<Void>?, context: ChannelHandlerContext) {
        taken?.succeed()
        guard case .proven = self.state else { return answer.fail(ChannelError.ioOnClosedChannel) }
        let ping = Frame.ping(UInt64.random(in: .min ... .max))
        guard case .ping(let value) = ping, self.allowed([ping]).count == 1 else {
            return answer.fail(EarshotError(.busy, "too many questions to the peer are unanswered; try again"))
        }
        self.pongs.expect(value, answer, now: context.eventLoop.now)
        self.writeAccounted([ping], context: context)
        context.eventLoop.scheduleTask(in: TimeAmount(EarshotLimits.pingTime)) {
            answer.fail(EarshotError(.timedOut, "no answer within \(EarshotLimits.pingTime)"))
        }
    }

    /// Closes the connection to a peer that sends but does not read, because its pending output would otherwise stay forever.
    func boundUnread(context: ChannelHandlerContext) {
        if self.writer.isGivenUp(on: context.eventLoop) { self.giveUp(context: context) }
    }

    /// Closes a dead connection. The node learns of it immediately, because closing waits for a peer that does not answer.
    private func giveUp(context: ChannelHandlerContext) {
        if case .proven(let connection) = self.state {
            self.state = .closed
            self.settings.emit(.closed(connection, .dead))
        }
        self.heartbeatTask?.cancel()
        self.close(context: context)
    }
}
