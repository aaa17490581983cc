import EarshotWire
import OrderedCollections

/// The move of streams from the control connection to their own data connections, and back if those are lost.
extension NodeCore {
    // MARK: Sending

    /// Plans a data connection for a stream that has sent enough to be worth one, if the peer supports that.
    mutating func streamIsLarge(_ stream: StreamRecord) {
        let facts = self.records[stream.peerID]?.link.current?.facts
        guard stream.row.direction == .outgoing, stream.row.state == .open, stream.outlet == .control,
            facts?.peer.extensions.announce(.streamReroute) == true
        else { return }
        self.streams[stream.row.id]?.lead(to: .wanted)
        self.rerouteNext(to: stream.peerID)
    }

    /// Requests data connections for the streams that want one, a few at a time.
    mutating func rerouteNext(to peer: PeerID) {
        guard !self.streams.isOver else { return }
        while self.streams.count(of: peer, .opensData) < EarshotLimits.streamReroutes,
            let id = self.streams.ids(of: peer, .wantsData).first
        {
            self.streams[id]?.lead(to: .opening)
            self.emit(.stream(id, .askForData))
        }
    }

    /// Handles the outcome of an attempt to open a data connection.
    mutating func streamDataOpened(_ id: StreamID, _ stands: Bool) {
        guard let stream = self.streams[id], stream.row.state != .closed else { return }
        switch stream.row.direction {
        case .incoming: self.stepInlet(of: id) { $0.opened(stands) }
        case .outgoing:
            guard stream.outlet == .opening else { return }
            guard stands else { return self.streamDataUnneeded(stream) }
            self.streams[id]?.lead(to: .settled)
            self.emit(.stream(id, .useData))
            self.rerouteNext(to: stream.peerID)
        }
    }

    /// Handles a stream whose bytes were all sent before the data connection was established, or which gets none.
    mutating func streamDataUnneeded(_ stream: StreamRecord) {
        self.streams[stream.row.id]?.lead(to: .settled)
        self.closeData(TransferID(stream.row.id))
        self.rerouteNext(to: stream.peerID)
    }

    // MARK: Receiving

    /// Handles a request of the peer: the sender of a stream wants a data connection for it, or the receiver wants the bytes on the control
    /// connection again.
    mutating func streamRerouteCame(_ reroute: StreamReroute, from peer: PeerID) {
        let id = reroute.id
        guard let stream = self.streams[id], stream.peerID == peer, stream.row.state == .open else { return }
        switch stream.row.direction {
        case .outgoing:
            self.emit(.stream(id, .goBack(to: reroute.offset)))
            self.streamDataUnneeded(stream)
        case .incoming:
            self.stepInlet(of: id) {
                $0.asked()
                return .wait
            }
            self.openData(.stream(id), with: peer)
        }
    }

    mutating func streamRerouted(_ rerouted: StreamReroute, by peer: PeerID) {
        guard self.streams[rerouted.id]?.peerID == peer else { return }
        self.stepInlet(of: rerouted.id) { $0.rerouted() }
    }

    mutating func stepInlet(of id: StreamID, _ event: (inout StreamInlet) -> StreamInlet.Action) {
        guard let stream = self.streams[id], stream.row.state == .open, stream.row.direction == .incoming else { return }
        switch self.streams[id]?.step(event) ?? .wait {
        case .wait: break
        case .read: self.emit(.stream(id, .readData))
        case .callBack:
            self.closeData(TransferID(id))
            if let link = stream.link { self.emit(.stream(id, .callBack(on: link))) }
        }
    }
}
