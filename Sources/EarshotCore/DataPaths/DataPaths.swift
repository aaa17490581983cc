import EarshotWire
import OrderedCollections

/// The data connections of transfers, and the attempts to open them. The two sides agree on each over the control connection, and the side
/// that can reach the other dials (``DataLane``). A transfer has at most one. The number of transfers is limited where transfers begin.
struct DataPaths: Sendable {
    private struct Path: Sendable {
        let peer: PeerID
        let link: LinkID
        /// The number of the attempt, which distinguishes it from earlier ones of the same transfer.
        let attempt: UInt64
        var lane: DataLane
        /// The token to dial with, while the dial waits for its turn.
        var heldToken: DataToken?
        var isSettled = false

        /// Whether a dial is under way.
        var isDialling: Bool { self.lane.isDialling && self.heldToken == nil }
    }

    private var paths: OrderedDictionary<TransferID, Path> = [:]
    /// The generator that makes tokens.
    typealias Randomness = any RandomNumberGenerator & Sendable

    /// The number of data connections and attempts.
    var count: Int { self.paths.count }

    /// The highest number of dials in flight to one peer.
    var mostDials: Int {
        Dictionary(self.paths.values.lazy.filter(\.isDialling).map { ($0.peer, 1) }, uniquingKeysWith: +).values.max() ?? 0
    }

    /// Returns the transfers with a data connection or an attempt to this peer, oldest first.
    func transfers(of peer: PeerID) -> [TransferID] { self.paths.filter { $0.value.peer == peer }.map(\.key) }

    /// Returns the transfer's attempt while it is pending, and so needs a deadline.
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

    /// Closes data connections and attempts of a peer. All are closed before the next dial to the peer.
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

    /// Starts the held dials to a peer, oldest first, up to a limit. If too many connections arrived at once, the peer would drop some of the
    /// unproven ones.
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
        // The dial waits for its turn.
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

    /// Returns a new ticket, with which the peer may dial from now on.
    private func ticket(
        _ transfer: TransferID, _ path: Path, using random: inout Randomness, into effects: inout [Effect]
    ) -> DataTicket {
        let token = DataToken(using: &random)
        effects.append(.dataPath(transfer, .expect(token, from: path.peer, over: path.link, attempt: path.attempt)))
        return DataTicket(transfer: transfer, token: token)
    }
}
