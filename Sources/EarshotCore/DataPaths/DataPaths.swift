import EarshotWire
import OrderedCollections

/// The data connections of transfers, and the ways to them: asked for over the control connection, dialled by whichever side can
/// (``DataLane``). At most one for each transfer; how many transfers there are is bounded where they begin.
struct DataPaths: Sendable {
    private struct Path: Sendable {
        let peer: PeerID
        let link: LinkID
        /// Tells this one from an earlier one of the same transfer.
        let attempt: UInt64
        var lane: DataLane
        /// What to dial with, until it is this one's turn.
        var heldToken: DataToken?
        var isSettled = false

        /// Whether a dial is under way.
        var isDialling: Bool { self.lane.isDialling && self.heldToken == nil }
    }

    private var paths: OrderedDictionary<TransferID, Path> = [:]
    /// Makes tokens.
    typealias Randomness = any RandomNumberGenerator & Sendable

    /// Data connections, and attempts at them.
    var count: Int { self.paths.count }

    /// Dials under way to one peer, the most.
    var mostDials: Int {
        Dictionary(self.paths.values.lazy.filter(\.isDialling).map { ($0.peer, 1) }, uniquingKeysWith: +).values.max() ?? 0
    }

    /// Of which transfers there is one with that peer, the oldest first.
    func transfers(of peer: PeerID) -> [TransferID] { self.paths.filter { $0.value.peer == peer }.map(\.key) }

    /// The attempt of a transfer that is under way, and must not take for ever.
    func waiting(_ transfer: TransferID) -> UInt64? { self.paths[transfer].flatMap { $0.isSettled ? nil : $0.attempt } }

    mutating func handle(
        _ event: DataPathEvent, of transfer: TransferID, using random: inout Randomness, into effects: inout [Effect]
    ) {
        switch event {
        case .wanted(let peer, let link, let isInitiator, let attempt):
            self.close(transfer, into: &effects)
            let (lane, action) = DataLane.begin(isInitiator: isInitiator)
            self.paths[transfer] = Path(peer: peer, link: link, attempt: attempt, lane: lane)
            self.perform(action, for: transfer, using: &random, into: &effects)
        case .over: self.close(transfer, into: &effects)
        case .ticket(let token, let peer):
            guard self.paths[transfer]?.peer == peer else { return }
            self.step(transfer, using: &random, into: &effects) { $0.receivedTicket(token) }
        case .unavailable(let peer):
            guard self.paths[transfer]?.peer == peer else { return }
            self.step(transfer, using: &random, into: &effects) { $0.receivedUnavailable() }
        case .dialFailed(let attempt):
            guard self.paths[transfer]?.attempt == attempt else { return }
            self.step(transfer, using: &random, into: &effects) { $0.dialFailed() }
        case .expired(let attempt):
            guard self.paths[transfer]?.attempt == attempt else { return }
            self.step(transfer, using: &random, into: &effects) { $0.expired() }
        case .attached(let attempt):
            guard self.paths[transfer]?.attempt == attempt else { return effects.append(.dataPath(transfer, .drop)) }
            self.step(transfer, using: &random, into: &effects) { $0.attached() }
        }
    }

    private mutating func close(_ transfer: TransferID, into effects: inout [Effect]) {
        guard let peer = self.paths[transfer]?.peer else { return }
        self.close([transfer], of: peer, into: &effects)
    }

    /// Ends those of a peer, all before it is dialled for any other.
    mutating func close(_ transfers: [TransferID], of peer: PeerID, into effects: inout [Effect]) {
        for transfer in transfers {
            guard let path = self.paths.removeValue(forKey: transfer) else { continue }
            effects.append(.dataPath(transfer, .revoke))
            effects.append(.dataPath(transfer, .close(attempt: path.attempt)))
        }
        self.dialNext(peer, into: &effects)
    }

    private mutating func step(
        _ transfer: TransferID, using random: inout Randomness, into effects: inout [Effect],
        _ event: (inout DataLane) -> DataLane.Action
    ) {
        guard let index = self.paths.index(forKey: transfer) else { return }
        let action = event(&self.paths.values[index].lane)
        self.perform(action, for: transfer, using: &random, into: &effects)
        self.dialNext(self.paths.values[index].peer, into: &effects)
    }

    /// Dials a peer for those whose turn it is, the oldest first: of many at once those that are not proven yet would have to give way there.
    private mutating func dialNext(_ peer: PeerID, into effects: inout [Effect]) {
        var free = EarshotLimits.dataDials - self.paths.values.count { $0.peer == peer && $0.isDialling }
        for (transfer, path) in self.paths where free > 0 && path.peer == peer && path.lane.isDialling {
            guard let token = path.heldToken else { continue }
            self.paths[transfer]?.heldToken = nil
            effects.append(.dataPath(transfer, .dial(token, peer, over: path.link, attempt: path.attempt)))
            free -= 1
        }
    }

    private mutating func perform(
        _ action: DataLane.Action, for transfer: TransferID, using random: inout Randomness, into effects: inout [Effect]
    ) {
        guard let path = self.paths[transfer] else { return }
        switch action {
        case .wait: break
        case .issueTicket:
            let ticket = self.ticket(transfer, path, using: &random, into: &effects)
            effects.append(.send(path.link, [.dataTicket(ticket)]))
        // In its turn.
        case .dial(let token): self.paths[transfer]?.heldToken = token
        case .swapSides:
            let ticket = self.ticket(transfer, path, using: &random, into: &effects)
            effects.append(.send(path.link, [.dataUnavailable(transfer), .dataTicket(ticket)]))
        case .giveUpAndSay:
            effects.append(.send(path.link, [.dataUnavailable(transfer)]))
            self.settle(transfer, .doWithout(attempt: path.attempt), into: &effects)
        case .giveUp: self.settle(transfer, .doWithout(attempt: path.attempt), into: &effects)
        case .use: self.settle(transfer, .use(attempt: path.attempt), into: &effects)
        case .drop: effects.append(.dataPath(transfer, .drop))
        }
    }

    private mutating func settle(_ transfer: TransferID, _ outcome: DataPathEffect, into effects: inout [Effect]) {
        self.paths[transfer]?.isSettled = true
        effects.append(.dataPath(transfer, .revoke))
        effects.append(.dataPath(transfer, outcome))
    }

    /// A new ticket, by which the peer may dial from now on.
    private func ticket(
        _ transfer: TransferID, _ path: Path, using random: inout Randomness, into effects: inout [Effect]
    ) -> DataTicket {
        let token = DataToken(using: &random)
        effects.append(.dataPath(transfer, .expect(token, from: path.peer, over: path.link, attempt: path.attempt)))
        return DataTicket(transfer: transfer, token: token)
    }
}
