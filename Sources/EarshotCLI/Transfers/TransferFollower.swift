import EarshotClient
import EarshotSafety

/// Follows transfers to their ends, across interruptions: a peer that disconnects and returns, and a restart of the daemon.
struct TransferFollower: Sendable {
    /// The name on the progress line.
    let name: String
    let client: ControlClient
    let rows: TransferRows
    /// Whether following ends once the remaining transfers only wait for peers.
    let leavesWaiting: Bool

    /// The time to wait for an answer before the sender is told that it is waiting.
    private static let patience: Duration = .seconds(1)
    /// The longest time to wait for a daemon that stopped.
    static let daemonPatience: Duration = .seconds(60)

    /// Waits until no transfer needs to be waited for. The caller subscribed to `events` before it made the transfers; the subscription
    /// resumes after an interruption.
    func follow(_ events: ControlEvents) async throws {
        if let group = self.group {
            self.note(try await self.client.group(group).value)
        } else {
            for id in Set(self.rows.running.filter { $0.state == .offered }.map(\.peerID)) {
                let peer = try await self.client.peer(id).value
                self.rows.note(id, isConnected: peer.isReachable)
                if !self.leavesWaiting { Self.sayThatItWaits(self.name, for: peer) }
            }
        }
        self.draw()
        try await Self.sayingWhoIsAwaited(self.name, { self.rows.awaited }) {
            if !self.isDone { try await self.read(events) }
        }
        ProgressLine.leave()
    }

    /// Reports at once that a file waits if its receiver cannot be reached.
    static func sayThatItWaits(_ name: String, for peer: ControlAPI.Peer) {
        guard let words = self.waitingWords(name, for: peer) else { return }
        ProgressLine.leave()
        Standard.note(words)
    }

    /// The sentence, escaped; `nil` for a peer that can be reached.
    static func waitingWords(_ name: String, for peer: ControlAPI.Peer) -> String? {
        guard !peer.isReachable else { return nil }
        let (file, peerName) = (name.escapedForDisplay, peer.name.escapedForDisplay)
        return peer.presence == .nearby ? "\(file) waits for a connection to \(peerName)" : "\(peerName) is away; \(file) waits for it"
    }

    /// The group of the transfers, which shows which members are connected.
    private var group: GroupID? { self.rows.all.first?.group?.id }

    private func note(_ group: ControlAPI.Group) {
        for member in group.members { self.rows.note(member.peerID, isConnected: member.state == .connected) }
    }

    private var isDone: Bool { self.leavesWaiting ? self.rows.areOverOrWaiting : self.rows.areOver }

    private func read(_ events: ControlEvents) async throws {
        for try await event in events {
            let isReadable = event.unreadable.isEmpty
            let event = event.value
            if let resource = event.resource {
                guard self.rows.contains(resource.id) else { continue }
                if self.rows.update(resource), !self.leavesWaiting {
                    ProgressLine.leave()
                    Standard.note(
                        "\(resource.peerName.escapedForDisplay) is away; \(resource.name.escapedForDisplay) resumes when it is back")
                }
            } else if event.type == .gap || !isReadable {
                try await self.refresh()
            } else if let group = self.group {
                guard let changed = event.group, changed.id == group else { continue }
                self.note(changed)
            } else if let peer = event.peer {
                self.rows.note(peer.id, isConnected: peer.isReachable)
            } else if let session = event.session {
                for member in session.members { self.rows.note(member.peerID, isConnected: member.state == .connected) }
            } else {
                continue
            }
            self.draw()
            if self.isDone { return }
        }
    }

    /// Reloads the rows. If the daemon restarts meanwhile, the next event is another gap.
    private func refresh() async throws(ControlError) {
        do throws(ControlError) {
            for row in self.rows.running { self.rows.update(try await self.client.resource(row.id).value) }
        } catch {
            guard error.isOutage else { throw error }
        }
    }

    /// Runs `operation`. If it takes longer than `patience`, reports once which peers it is waiting for.
    static func sayingWhoIsAwaited<Value: Sendable>(
        _ name: String, _ awaited: @escaping @Sendable () async -> [String], _ operation: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        try await withThrowingTaskGroup(of: Value?.self) { group in
            group.addTask { try await operation() }
            group.addTask {
                try await Task.sleep(for: Self.patience)
                for peer in await awaited() where !Task.isCancelled {
                    ProgressLine.leave()
                    Standard.note("waiting for \(peer.escapedForDisplay) to accept \(name.escapedForDisplay)")
                }
                return nil
            }
            defer { group.cancelAll() }
            while let result = try await group.next() {
                if let result { return result }
            }
            throw CancellationError()
        }
    }

    private func draw() { ProgressLine.draw(name: self.name, self.rows.all) }
}

extension ControlAPI.Peer {
    /// Whether the peer can receive an offer now. A LocalSend device has no connection that stays.
    fileprivate var isReachable: Bool { self.state == .connected || (self.kind == .known(.localsend) && self.presence == .nearby) }
}
