import EarshotClient
import Synchronization

/// The rows of one command's transfers, as far as they are known.
final class TransferRows: Sendable {
    private struct State {
        var rows: [ResourceID: ControlAPI.Resource] = [:]
        var order: [ResourceID] = []
        /// The ids of peers that are not connected.
        var away: Set<PeerID> = []
        /// Whether a request for new transfers is pending.
        var isAsking = false
    }

    private let state = Mutex(State())

    /// All rows, in the order in which the transfers were made.
    var all: [ControlAPI.Resource] { self.state.withLock { state in state.order.compactMap { state.rows[$0] } } }
    var areOver: Bool { self.all.allSatisfy(\.isOver) }
    var running: [ControlAPI.Resource] { self.all.filter { !$0.isOver } }
    /// The names of connected peers that have not answered the offer.
    var awaited: [String] {
        self.state.withLock { state in
            state.rows.values.filter { $0.state == .offered && !state.away.contains($0.peerID) }.map(\.peerName)
        }
    }

    /// Whether every transfer has ended or waits for its peer to return.
    var areOverOrWaiting: Bool {
        self.state.withLock { state in
            state.rows.values.allSatisfy { $0.isOver || $0.state == .paused || ($0.state == .offered && state.away.contains($0.peerID)) }
        }
    }

    /// Updates a known row; ignores transfers of other commands. Returns whether the transfer has just been interrupted.
    @discardableResult
    func update(_ resource: ControlAPI.Resource) -> Bool {
        self.state.withLock { state in
            // A row that is over stays over: events may arrive out of order.
            guard let known = state.rows[resource.id], !known.isOver else { return false }
            state.rows[resource.id] = resource
            return resource.state == .paused && known.state != .paused
        }
    }

    private func add(_ resources: [ControlAPI.Resource]) {
        self.state.withLock { state in
            for resource in resources where state.rows[resource.id] == nil {
                state.rows[resource.id] = resource
                state.order.append(resource.id)
            }
        }
    }

    /// Requests new transfers, and adds the rows of the answer.
    func make(_ ask: () async throws -> [ControlAPI.Resource]) async throws {
        self.state.withLock { $0.isAsking = true }
        defer { self.state.withLock { $0.isAsking = false } }
        self.add(try await ask())
    }

    /// Waits for a pending request, and returns the rows that are not over: an interruption cancels transfers that the daemon is just
    /// making too.
    func runningOnceKnown() async -> [ControlAPI.Resource] {
        while self.state.withLock({ $0.isAsking }) { try? await Task.sleep(for: .milliseconds(10)) }
        return self.running
    }

    func contains(_ id: ResourceID) -> Bool { self.state.withLock { $0.rows[id] != nil } }

    func note(_ peerID: PeerID, isConnected: Bool) {
        self.state.withLock { state in
            if isConnected { state.away.remove(peerID) } else { state.away.insert(peerID) }
        }
    }
}
