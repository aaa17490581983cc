import EarshotWire
import NIOCore

/// Turns of connections: how much of a connection's input is decoded and passed to the node at once, and how the rest is kept.
extension ConnectionHandler {
    func emit(_ frames: [Frame]) {
        guard case .proven(let connection) = self.state, !frames.isEmpty else { return }
        let weight = frames.reduce(0) { $0 + $1.weight }
        connection.turns.begin(weight: weight)
        self.settings.emit(.received(connection, frames, weight: weight))
    }

    /// Returns the amount of work in a turn of the connection. It is reduced if a turn would take too long.
    func turnSize(of connection: Connection) -> Int {
        let most = connection.turns.size
        return self.settings.turns?.pace.size(upTo: most) ?? most
    }

    /// Returns whether frames may be passed to the node now. If not, the remaining input is decoded later.
    func mayHandOn(_ connection: Connection, context: ChannelHandlerContext) -> Bool {
        guard !self.isStalled else { return false }
        guard !connection.turns.mayBegin else { return true }
        self.isStalled = connection.turns.wait(self.resumption(context: context))
        return !self.isStalled
    }

    /// Yields to other connections after a turn whose work was done on this event loop.
    func letOthersIn(context: ChannelHandlerContext) {
        self.isStalled = true
        self.resumption(context: context)()
    }

    /// Writes the replies of the state machine.
    func answer(_ replies: inout [Frame], context: ChannelHandlerContext) {
        guard !replies.isEmpty else { return }
        self.writeAccounted(replies, context: context)
        replies = []
    }

    /// Ends the connection after writing the pending replies.
    func finish(_ end: LinkEnd, behind replies: inout [Frame], context: ChannelHandlerContext) {
        self.answer(&replies, context: context)
        self.finish(end, context: context)
    }

    private func resumption(context: ChannelHandlerContext) -> @Sendable () -> Void {
        let loopBound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        let turn = { @Sendable in
            let (this, context) = loopBound.value
            this.turnCame(context: context)
        }
        let eventLoop = context.eventLoop
        guard let turns = self.settings.turns, turns.areOn(eventLoop) else { return { eventLoop.execute(turn) } }
        return { turns.take(turn) }
    }

    private func turnCame(context: ChannelHandlerContext) {
        self.isStalled = false
        guard case .proven = self.state, !self.isClosing else { return }
        do throws(WireError) {
            try self.decode(context: context)
            // Nothing was received, so the undecoded rest has only become smaller.
            self.noteUndecoded(self.decoder.bufferedBytes)
        } catch {
            self.refuse(error, context: context)
        }
        self.resumeReading(context: context)
    }

    /// Increases the read size for bulk once the peer is in a session.
    func takeBulk(_ connection: Connection, context: ChannelHandlerContext) {
        guard !self.takesBulk, connection.turns.isMember else { return }
        self.takesBulk = true
        Transport.readForMessages(context.channel)
    }

    /// Accounts for undecoded input after a read, and bounds it. Normally the input is a piece of a frame, and the rest of the last read.
    /// There is more only if the peer has ended the connection after it, and then the peer does not wait for an answer. This excess is
    /// bounded over all connections. So are pieces of frames from peers without a session, because sending a piece of a large message
    /// costs such a peer nothing.
    func boundUndecoded(context: ChannelHandlerContext) {
        let isShort: Bool
        switch self.state {
        // Input that arrives while reading is suspended comes from a peer that has gone.
        case .proven(let connection): isShort = self.settings.accounts.isCrowded && (!connection.turns.isMember || self.wantsRead)
        case .examining: isShort = true
        case .waiting, .handshaking, .attaching, .closed: return
        }
        self.noteUndecoded(self.decoder.bufferedBytes)
        let limit = isShort ? EarshotLimits.crowdedUnprocessedBytes : EarshotLimits.undecodedBytes
        guard self.undecoded > limit else { return }
        self.dropUndecoded()
        self.finish(.lost, context: context)
    }

    /// Drops the undecoded input immediately. A pending turn retains the handler, and with it the rest of the peer's input.
    func dropUndecoded() {
        self.decoder = FrameDecoder()
        self.noteUndecoded(0)
    }

    func noteUndecoded(_ bytes: Int) {
        self.settings.accounts.noteUndecoded(bytes - self.undecoded)
        self.undecoded = bytes
    }

    var mayRead: Bool {
        !self.isStalled && !self.isExamining && self.dropped < EarshotLimits.closingRead
            && self.writer.unwritten < self.settings.accounts.unwrittenLimit(isMember: self.isMember)
    }

    private var isMember: Bool { if case .proven(let connection) = self.state { connection.turns.isMember } else { false } }

    /// Resumes reading after one of its obstacles may have ended.
    func resumeReading(context: ChannelHandlerContext) {
        guard self.wantsRead, self.mayRead else { return }
        self.wantsRead = false
        context.read()
    }
}
