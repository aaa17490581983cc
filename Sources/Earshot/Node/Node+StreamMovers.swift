import EarshotCore
import EarshotWire
import NIOCore

/// Movers of streams' bytes, as commanded by the core.
extension Node {
    /// Returns a row with its progress.
    func shown(_ row: ByteStream) -> ByteStream {
        guard let mover = self.streamMovers[row.id] else { return row }
        var row = row
        (row.transferred, row.bytesPerSecond) = mover.progress(at: self.transport.timers.now)
        return row
    }

    // MARK: Bytes

    func received(_ data: StreamData, from peer: PeerID) { self.incomingFlow(data.id, from: peer)?.append(data.data) }

    func received(_ end: StreamEnd, from peer: PeerID) { self.incomingFlow(end.id, from: peer)?.finish(at: end.size) }

    private func incomingFlow(_ id: StreamID, from peer: PeerID) -> IncomingFlow? {
        guard let mover = self.streamMovers[id], mover.peer == peer, case .incoming(let flow) = mover.half else { return nil }
        return flow
    }

    /// Reports that a reader that took over a data connection has finished with it.
    nonisolated func streamMoved(_ id: StreamID, _ error: EarshotError?) { self.input.yield(.core(.stream(id, .dataEnded(error)))) }

    // MARK: Effects

    func carryOut(_ command: StreamCommand, for id: StreamID) {
        switch command {
        case .send(let peer, let call):
            let flow = OutgoingFlow(id, self.transport.timers) { [input] in input.yield(.core(.stream(id, .isLarge))) }
            self.streamMovers[id] = StreamMover(peer: peer, half: .outgoing(flow))
            self.coreShell.opened[call] = (id, flow)
        case .receive(let peer, let link, let window):
            let connection = self.links[link]
            let flow = IncomingFlow(window: window, self.transport.timers) { limit in
                connection?.send([.stream(.accept(StreamAccept(id: id, limit: limit)))])
            }
            self.streamMovers[id] = StreamMover(peer: peer, half: .incoming(flow))
        case .end(let error): self.endStream(id, error)
        case .forget: self.streamMovers[id] = nil
        case .permit, .askForData, .useData, .readData, .callBack, .goBack:
            guard let mover = self.streamMovers[id] else { return }
            switch mover.half {
            case .outgoing(let flow): self.carryOut(command, flow, id)
            case .incoming(let flow): self.carryOut(command, flow, id)
            case .moved: break
            }
        }
    }

    private func carryOut(_ command: StreamCommand, _ flow: OutgoingFlow, _ id: StreamID) {
        switch command {
        case .permit(let limit, let link): if let connection = self.links[link] { flow.accepted(limit, on: connection) }
        case .askForData: self.handle(.stream(id, flow.askForData() ? .dataAsked : .dataUnneeded))
        case .useData:
            if let data = self.dataConnections[TransferID(id)], flow.move(to: data) { return }
            self.handle(.stream(id, .dataUnneeded))
        case .goBack(let offset): flow.calledBack(to: offset)
        case .send, .receive, .readData, .callBack, .end, .forget: break
        }
    }

    private func carryOut(_ command: StreamCommand, _ flow: IncomingFlow, _ id: StreamID) {
        switch command {
        case .readData:
            guard let data = self.dataConnections[TransferID(id)] else { return self.handle(.stream(id, .dataEnded(nil))) }
            if flow.hand(over: data) { return }
            self.spawn { [input] in input.yield(.core(.stream(id, .dataEnded(await Self.take(from: data, flow))))) }
        case .callBack(let link):
            guard let offset = flow.callBack() else { return }
            self.links[link]?.send([.stream(.reroute(StreamReroute(id: id, offset: offset)))])
        case .send, .receive, .permit, .askForData, .useData, .goBack, .end, .forget: break
        }
    }

    private func endStream(_ id: StreamID, _ error: EarshotError?) {
        guard let mover = self.streamMovers[id] else { return }
        self.streamMovers[id]?.half = .moved(mover.progress(at: self.transport.timers.now).transferred)
        switch mover.half {
        case .outgoing(let flow): flow.close()
        case .incoming(let flow): if let error { flow.fail(error) }
        case .moved: break
        }
    }

    /// Reads a stream's bytes from a data connection. Returns an error if the peer is at fault for the end.
    private static func take(from data: DataConnection, _ flow: IncomingFlow) async -> EarshotError? {
        do throws(EarshotError) {
            while let piece = try await data.read() {
                guard flow.appendCounted(piece) else { throw IncomingFlow.tooMuch }
            }
            return nil
        } catch {
            return error.code == .notConnected ? nil : error
        }
    }
}
