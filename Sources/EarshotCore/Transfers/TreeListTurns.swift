import DequeModule
package import EarshotWire

/// Whose list of entries is received: of each peer's directories one at a time has its turn, and further ones wait, the first comer first.
///
/// A list is held in memory, up to 32 MiB of it: eight at a time would let one peer take eight times as much. Pure: the node hands it the
/// transfers that begin and end, and tells the next one.
package struct TreeListTurns {
    private struct Line {
        var current: ResourceID
        var waiting: Deque<ResourceID> = []
    }

    private var lines: [PeerID: Line] = [:]
    private var peers: [ResourceID: PeerID] = [:]

    package init() {}

    /// A directory is about to be received; whether it has its turn now, or waits for it.
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

    /// A transfer's list takes little memory from now on, or its job has returned; gives the transfer whose turn it is now. Nothing happens
    /// for one that has had its turn, or wants none.
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
