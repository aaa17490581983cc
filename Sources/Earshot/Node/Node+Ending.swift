import EarshotWire
import NIOCore
import OrderedCollections

/// What ends when a connection, a session, the trust in a peer, or an invitation does: see ``Ending``.
extension Node {
    /// Has everything of a peer's that depends on what has ended end too, or wait, as the table says; `error` is said of what ends.
    func end(_ ending: Ending, of peer: PeerID, _ error: EarshotError) {
        for dependent in Ending.Dependent.allCases {
            switch ending.fate(of: dependent) {
            case .stays: break
            case .waits: self.suspend(dependent, of: peer, by: ending)
            case .ends: self.end(dependent, of: peer, by: ending, error)
            }
        }
    }

    private func end(_ dependent: Ending.Dependent, of peer: PeerID, by ending: Ending, _ error: EarshotError) {
        switch dependent {
        // The core's own.
        case .messages, .queuedMessages, .dataConnections, .comparison, .openingStreams, .streams: break
        case .transfers: self.interruptTransfers(of: peer, error.code, error.message) { $0.stored?.isQueued != true }
        case .queuedTransfers: self.interruptTransfers(of: peer, error.code, error.message) { $0.stored?.isQueued == true }
        }
    }

    private func suspend(_ dependent: Ending.Dependent, of peer: PeerID, by ending: Ending) {
        // What has waited for an invitation waits for the next one as it did.
        guard ending == .connection else { return }
        switch dependent {
        case .messages, .queuedMessages: break
        case .transfers: self.pauseTransfers(of: peer) { $0.stored?.isQueued != true }
        case .queuedTransfers: self.pauseTransfers(of: peer) { $0.stored?.isQueued == true }
        // The core's own.
        case .dataConnections, .comparison, .openingStreams, .streams: break
        }
    }
}
