import EarshotClient
import Synchronization

/// The rows of what one command sends, as far as they are known.
final class TransferRows: Sendable {
    private struct State {
        var rows: [String: ControlAPI.Resource] = [:]
        var order: [String] = []
        /// Peers that are not connected, by id.
        var away: Set<String> = []
        /// Whether the daemon has been asked to make some and has not answered.
        var isAsking = false
    }

    private let state = Mutex(State())

    /// All of them, in the order in which they were made.
    var all: [ControlAPI.Resource] { self.state.withLock { state in state.order.compactMap { state.rows[$0] } } }
    var areOver: Bool { self.all.allSatisfy(\.isOver) }
    var running: [ControlAPI.Resource] { self.all.filter { !$0.isOver } }
    /// The names of those who are there and have not answered the offer.
    var awaited: [String] {
        self.state.withLock { state in
            state.rows.values.filter { $0.state == .offered && !state.away.contains($0.peerID) }.map(\.peerName)
        }
    }

    /// Whether nothing moves, or will before a peer is back.
    var areOverOrWaiting: Bool {
        self.state.withLock { state in
            state.rows.values.allSatisfy { $0.isOver || $0.state == .paused || ($0.state == .offered && state.away.contains($0.peerID)) }
        }
    }

    /// Takes news of one; of those that are not ours there is none. Says whether it has just been interrupted.
    @discardableResult
    func update(_ resource: ControlAPI.Resource) -> Bool {
        self.state.withLock { state in
            // What is over stays over, in whatever order the news come.
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

    /// Asks the daemon for rows, which are known as soon as it answers.
    func make(_ ask: () async throws -> [ControlAPI.Resource]) async throws {
        self.state.withLock { $0.isAsking = true }
        defer { self.state.withLock { $0.isAsking = false } }
        self.add(try await ask())
    }

    /// Those that are not over, once it is known which there are: what the daemon is just making is to be taken back too.
    func runningOnceKnown() async -> [ControlAPI.Resource] {
        while self.state.withLock({ $0.isAsking }) { try? await Task.sleep(for: .milliseconds(10)) }
        return self.running
    }

    func contains(_ id: String) -> Bool { self.state.withLock { $0.rows[id] != nil } }

    func note(_ peerID: String, isConnected: Bool) {
        self.state.withLock { state in
            if isConnected { state.away.remove(peerID) } else { state.away.insert(peerID) }
        }
    }
}
