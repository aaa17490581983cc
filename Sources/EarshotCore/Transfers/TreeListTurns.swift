import DequeModule
package import EarshotWire

/// The turns of directories whose lists of entries are received: one directory per peer at a time. Further ones wait in the order of their
/// arrival.
///
/// A list is held in memory, up to 32 MiB of it. Eight lists at a time would let one peer use eight times as much. A pure value: the node
/// reports transfers that begin and end, and gets the next one.
package struct TreeListTurns {
    private struct Line {
        var current: ResourceID
        var waiting: Deque<ResourceID> = []
    }

    private var lines: [PeerID: Line] = [:]
    private var peers: [ResourceID: PeerID] = [:]

    package init() {}

    /// Registers a directory that is about to be received. Returns whether it has its turn now.
    package mutating func begin(_ id: ResourceID, of peer: PeerID) -> Bool {
        guard self.peers[id] == nil else { return self.lines[peer]?.current == id }
        self.peers[id] = peer
        guard self.lines[peer] == nil else {
            self.lines[peer]?.waiting.append(id)
            return false
        }
        self.lines[peer] = Line(current: id)
        return true
    }

    /// Ends the turn of a transfer whose list takes little memory from now on, or whose job has returned. Returns the transfer that has its
    /// turn next. Does nothing for a transfer that has had its turn, or needs none.
    package mutating func end(_ id: ResourceID) -> ResourceID? {
        guard let peer = self.peers.removeValue(forKey: id), var line = self.lines[peer] else { return nil }
        guard line.current == id else {
            line.waiting.removeAll { $0 == id }
            self.lines[peer] = line
            return nil
        }
        guard let next = line.waiting.popFirst() else {
            self.lines[peer] = nil
            return nil
        }
        line.current = next
        self.lines[peer] = line
        return next
    }
}
