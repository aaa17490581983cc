import EarshotWire
import OrderedCollections

/// The data connections of resources and streams, and the attempts to open them. In this folder, both are called transfers. The two sides
/// agree on a data connection over the control connection, and the side that can reach the other dials (``DataLane``). A transfer has at
/// most one data connection. The number of transfers is limited where transfers begin.
struct DataPaths: Sendable {
    /// The transfer whose bytes a data connection carries.
    enum User: Sendable, Hashable {
        case resource(ResourceID)
        case stream(StreamID)

        var transfer: TransferID {
            switch self {
            case .resource(let id): TransferID(id)
            case .stream(let id): TransferID(id)
            }
        }
    }

    private struct Path: Sendable {
        let user: User
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
    /// The number of attempts until now.
    private var attempts: UInt64 = 0
    /// The generator that makes tokens.
    typealias Randomness = any RandomNumberGenerator & Sendable

    /// The number of data connections and attempts.
    var count: Int { self.paths.count }

    /// The highest number of dials in flight to one peer.
    var mostDials: Int {
        Dictionary(self.paths.values.lazy.filter(\.isDialling).map { ($0.peer, 1) }, uniquingKeysWith: +).values.max() ?? 0
    }

    /// Returns the transfers with a data connection or an attempt to this peer, oldest first.
    func users(of peer: PeerID) -> [User] { self.paths.values.filter { $0.peer == peer }.map(\.user) }

    /// Returns the transfer's attempt while it is pending, and so needs a deadline.
    func waiting(_ transfer: TransferID) -> UInt64? { self.paths[transfer].flatMap { $0.isSettled ? nil : $0.attempt } }

    /// Begins an attempt on which both sides have agreed, and closes an earlier data connection of the transfer. `isInitiator`: whether this
    /// side opened the control connection `link`.
    mutating func open(
        _ user: User, with peer: PeerID, over link: LinkID, isInitiator: Bool, using random: inout Randomness,
        into effects: inout [Effect]
    ) {
        self.close(user.transfer, into: &effects)
        self.attempts += 1
        let (lane, action) = DataLane.begin(isInitiator: isInitiator)
        let path = Path(user: user, peer: peer, link: link, attempt: self.attempts, lane: lane)
        self.paths[user.transfer] = path
        _ = self.perform(action, for: path, using: &random, into: &effects)
    }

    /// Handles an event. If the event ends an attempt, returns whether its transfer now has a data connection.
    mutating func handle(
        _ event: DataPathEvent, of transfer: TransferID, using random: inout Randomness, into effects: inout [Effect]
    ) -> (user: User, stands: Bool)? {
        guard let path = self.paths[transfer], let index = self.paths.index(forKey: transfer) else {
            if case .attached = event { effects.append(.dataPath(transfer, .drop)) }
            return nil
        }
        let action: DataLane.Action =
            switch event {
            case .ticket(let token, from: path.peer): self.paths.values[index].lane.receivedTicket(token)
            case .unavailable(from: path.peer): self.paths.values[index].lane.receivedUnavailable()
            case .dialFailed(attempt: path.attempt): self.paths.values[index].lane.dialFailed()
            case .expired(attempt: path.attempt): self.paths.values[index].lane.expired()
            case .attached(attempt: path.attempt): self.paths.values[index].lane.attached()
            case .attached: .drop
            // From another peer, or of an earlier attempt.
            case .ticket, .unavailable, .dialFailed, .expired: .wait
            }
        defer { self.dialNext(path.peer, into: &effects) }
        return self.perform(action, for: path, using: &random, into: &effects).map { (path.user, $0) }
    }

    /// Ends the transfer's attempt, or closes its data connection.
    mutating func close(_ transfer: TransferID, into effects: inout [Effect]) {
        guard let peer = self.paths[transfer]?.peer else { return }
        self.close([transfer], of: peer, into: &effects)
    }

    /// Closes data connections and attempts of a peer. All are closed before the next dial to the peer.
    mutating func close(_ transfers: [TransferID], of peer: PeerID, into effects: inout [Effect]) {
        for transfer in transfers {
            guard self.paths.removeValue(forKey: transfer) != nil else { continue }
            effects.append(.dataPath(transfer, .revoke))
            effects.append(.dataPath(transfer, .close))
        }
        self.dialNext(peer, into: &effects)
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

    /// Performs an action. If the action ends the attempt, returns whether there is a data connection.
    private mutating func perform(
        _ action: DataLane.Action, for path: Path, using random: inout Randomness, into effects: inout [Effect]
    ) -> Bool? {
        let transfer = path.user.transfer
        switch action {
        case .wait: break
        case .issueTicket:
            let ticket = self.ticket(for: path, using: &random, into: &effects)
            effects.append(.send(path.link, [ticket]))
        case .swapSides:
            let ticket = self.ticket(for: path, using: &random, into: &effects)
            effects.append(.send(path.link, [.dataUnavailable(transfer), ticket]))
        // The dial waits for its turn.
        case .dial(let token): self.paths[transfer]?.heldToken = token
        case .giveUpAndSay:
            effects.append(.send(path.link, [.dataUnavailable(transfer)]))
            return self.settle(transfer, stands: false, into: &effects)
        case .giveUp: return self.settle(transfer, stands: false, into: &effects)
        case .use: return self.settle(transfer, stands: true, into: &effects)
        case .drop: effects.append(.dataPath(transfer, .drop))
        }
        return nil
    }

    private mutating func settle(_ transfer: TransferID, stands: Bool, into effects: inout [Effect]) -> Bool {
        self.paths[transfer]?.isSettled = true
        effects.append(.dataPath(transfer, .revoke))
        if stands { effects.append(.dataPath(transfer, .use)) }
        return stands
    }

    /// Returns a new ticket, with which the peer may dial from now on.
    private func ticket(for path: Path, using random: inout Randomness, into effects: inout [Effect]) -> Frame {
        let (transfer, token) = (path.user.transfer, DataToken(using: &random))
        effects.append(.dataPath(transfer, .expect(token, from: path.peer, over: path.link, attempt: path.attempt)))
        return .dataTicket(DataTicket(transfer: transfer, token: token))
    }
}
