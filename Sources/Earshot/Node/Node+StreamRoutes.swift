import EarshotWire
import OrderedCollections

/// How streams move from the control connection to data connections of their own, and back where those are lost.
extension Node {
    // MARK: Sending

    /// So much has gone out that a data connection is worth its while.
    func streamIsLarge(_ id: StreamID) {
        guard let stream = self.streams[id], stream.row.state == .open, case .control = stream.outlet,
            let connection = stream.connection, connection.peer.extensions.contains(where: { $0.type == HelloExtension.streamReroute.type })
        else { return }
        self.streams[id]?.outlet = .wanted
        self.rerouteNext(to: stream.row.peerID)
    }

    /// Asks for data connections for the streams that want one, a few at a time.
    func rerouteNext(to peer: PeerID) {
        guard !self.areStreamsOver else { return }
        while self.streams.count(of: peer, .opensData) < EarshotLimits.streamReroutes,
            let id = self.streams.ids(of: peer, .wantsData).first, let next = self.streams[id]
        {
            self.streams[id]?.outlet = .settled
            guard case .outgoing(let flow) = next.flow, flow.askForData() else { continue }
            self.streams[id]?.outlet = .opening
            self.openData(TransferID(id), with: peer) { data in
                self.streams[id]?.outlet = .settled
                if data.map(flow.move(to:)) != true { self.closeData(TransferID(id)) }
                self.rerouteNext(to: peer)
            }
        }
    }

    // MARK: Receiving

    /// The sender of a stream wants a data connection for it; or the receiver of one wants the bytes here again.
    func received(_ reroute: StreamReroute, from peer: PeerID) {
        let id = reroute.id
        guard let stream = self.streams[id], stream.row.peerID == peer, stream.row.state != .closed else { return }
        switch stream.flow {
        case .outgoing(let flow):
            flow.calledBack(to: reroute.offset)
            self.closeData(TransferID(id))
        case .incoming:
            self.streams[id]?.inlet.asked()
            self.openData(TransferID(id), with: peer) { data in self.step(id) { $0.opened(data != nil) } }
        }
    }

    func receivedRerouted(_ rerouted: StreamReroute, from peer: PeerID) {
        guard self.streams[rerouted.id]?.row.peerID == peer else { return }
        self.step(rerouted.id) { $0.rerouted() }
    }

    /// The data connection brings nothing any more: it is lost, or by the peer's fault at an end.
    func streamDataEnded(_ id: StreamID, _ error: EarshotError?) {
        if let error { self.abortStream(id, error) }
        self.step(id) { $0.lost() }
    }

    /// The same of one that its reader has taken.
    nonisolated func streamMoved(_ id: StreamID, _ error: EarshotError?) { self.input.yield(.streamDataEnded(id, error)) }

    private func step(_ id: StreamID, _ event: (inout StreamInlet) -> StreamInlet.Action) {
        guard let stream = self.streams[id], stream.row.state != .closed, case .incoming(let flow?) = stream.flow else { return }
        var inlet = stream.inlet
        let action = event(&inlet)
        self.streams[id]?.inlet = inlet
        switch action {
        case .wait: break
        case .read:
            guard let data = self.dataConnection(TransferID(id)) else { return self.streamDataEnded(id, nil) }
            if data.peer.transport == .plaintext, flow.hand(over: data) { return }
            self.spawn { [input] in input.yield(.streamDataEnded(id, await Self.take(from: data, flow))) }
        case .callBack:
            self.closeData(TransferID(id))
            guard let offset = flow.callBack() else { return }
            stream.connection?.send([.streamReroute(StreamReroute(id: id, offset: offset))])
        }
    }

    /// Takes what comes over a data connection, and gives why it ended where that is the peer's fault.
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
