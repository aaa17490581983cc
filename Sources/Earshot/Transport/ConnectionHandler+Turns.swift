import EarshotWire
import NIOCore

/// How connections take turns: how much of one is decoded and handed to the node at once, and what becomes of the rest.
extension ConnectionHandler {
    func emit(_ frames: [Frame]) {
        guard case .proven(let connection) = self.state, !frames.isEmpty else { return }
        let weight = frames.reduce(0) { $0 + $1.weight }
        connection.turns.begin(weight: weight)
        self.settings.emit(.received(connection, frames, weight: weight))
    }

    /// How much work fills a turn of the connection: less where that would take too long.
    func turnSize(of connection: Connection) -> Int {
        let most = connection.turns.size
        return self.settings.turns?.pace.size(upTo: most) ?? most
    }

    /// Whether frames may be handed to the node now; where not, what is left is decoded once they may.
    func mayHandOn(_ connection: Connection, context: ChannelHandlerContext) -> Bool {
        guard !self.isStalled else { return false }
        guard !connection.turns.mayBegin else { return true }
        self.isStalled = connection.turns.wait(self.resumption(context: context))
        return !self.isStalled
    }

    /// A turn's work is done at once on this event loop, and the next connection's comes first.
    func letOthersIn(context: ChannelHandlerContext) {
        self.isStalled = true
        self.resumption(context: context)()
    }

    /// Writes what the machine has answered by itself.
    func answer(_ replies: inout [Frame], context: ChannelHandlerContext) {
        guard !replies.isEmpty else { return }
        self.writeAccounted(replies, context: context)
        replies = []
    }

    /// The connection is over, once what was answered before is written.
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
            // Nothing has come: what was left is less than it was.
            self.noteUndecoded(self.decoder.bufferedBytes)
        } catch {
            self.refuse(error, context: context)
        }
        self.resumeReading(context: context)
    }

    /// Once the peer is in a session its reads may grow to what bulk needs.
    func takeBulk(_ connection: Connection, context: ChannelHandlerContext) {
        guard !self.takesBulk, connection.turns.isMember else { return }
        self.takesBulk = true
        Transport.readForMessages(context.channel)
    }

    /// Keeps account of what waits to be decoded, when something has come. It is a piece of a frame, and what came with the last read; more only
    /// where the peer has ended the connection behind it, and then the peer waits for no answer to what no turn came for. That is bounded
    /// together, and so are pieces of frames of peers in no session with us: a piece of a large message costs each of them nothing.
    func boundUndecoded(context: ChannelHandlerContext) {
        let isShort: Bool
        switch self.state {
        // What comes although reading waits was left by a peer that has gone.
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

    /// Nothing of it will be decoded any more. At once: a turn that is waited for holds the handler, and with it all that the peer has left.
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

    /// Something that held the reading up is less.
    func resumeReading(context: ChannelHandlerContext) {
        guard self.wantsRead, self.mayRead else { return }
        self.wantsRead = false
        context.read()
    }
}
