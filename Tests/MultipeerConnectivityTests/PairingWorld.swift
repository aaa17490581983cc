import Earshot
import Foundation

@testable import MultipeerConnectivity

/// Programs in one network without sockets: each has its pairing, and a node that treats invitations and sessions as the core does. A seed
/// determines the schedule of all events.
struct PairingWorld {
    /// The invitations that a program accepts.
    enum Acceptance: CaseIterable {
        case all
        /// Accepts one invitation, and then stops advertising.
        case first
        case none
    }

    enum Frame {
        case invite(InvitationID, Envelope)
        case answer(InvitationID, SessionID?)
        case withdraw(InvitationID)
        case resume(SessionID)
        case end(SessionID)
        case introduction(Introduction, SessionID)
    }

    /// A task that an engine performs in order.
    enum Work {
        case decide((inout Pairing) -> Void)
        case introduced(Introduction, by: Int)
    }

    struct Program {
        let id: PeerID
        var pairing: Pairing
        var token = SessionToken.next()
        var acceptance: Acceptance
        var isAlive = true
        var work: [Work] = []
        var held: [Int: [Introduction]] = [:]
        /// The states of each other program that were reported to this program since it began.
        var told: [Int: [MCSessionState]] = [:]
        /// The part of the state that the node keeps.
        var outgoing: [Int: InvitationID] = [:]
        var envelopes: [Int: Envelope] = [:]
        var incoming: [Int: InvitationID] = [:]
        var sessions: [Int: SessionID] = [:]

        func isConnected(_ other: Int) -> Bool { self.told[other]?.last == .connected }
    }

    var random: SplitMix
    private(set) var programs: [Program] = []
    private var links: [[[Frame]]]
    private var planned: [(at: Duration, act: (inout PairingWorld) -> Void)] = []
    private var now: Duration = .zero
    /// The time since which something has been in flight without a pause.
    private var busySince: Duration?
    private var lastID: UInt64 = 0
    private(set) var steps = 0

    /// The longest time for everything in flight, with all its consequences.
    static let latency: Duration = .milliseconds(500)

    static let ids: [PeerID] = (0..<8).compactMap { number in PeerID(subjectPublicKeyInfo: [UInt8(number)]) }

    init(seed: UInt64, programs count: Int, acceptance: [Acceptance]) {
        self.random = SplitMix(state: seed)
        self.links = Array(repeating: Array(repeating: [], count: count), count: count)
        let ids = Self.ids.shuffled(using: &self.random).prefix(count)
        self.programs = zip(ids, acceptance).map { Program(id: $0, pairing: Pairing(id: $0), acceptance: $1) }
        for index in self.programs.indices { self.programs[index].pairing.open(self.programs[index].token) }
    }

    func index(of id: PeerID) -> Int { self.programs.firstIndex { $0.id == id } ?? 0 }
    private func peer(_ index: Int) -> MCPeerID { MCPeerID(id: self.programs[index].id, displayName: "p\(index)") }

    private mutating func fresh() -> UInt64 {
        self.lastID += 1
        return self.lastID
    }

    // MARK: Events

    mutating func plan(after start: Duration = .zero, within time: Duration, _ act: @escaping (inout PairingWorld) -> Void) {
        let at = self.now + start + time * Double.random(in: 0...1, using: &self.random)
        let place = self.planned.firstIndex { $0.at > at } ?? self.planned.endIndex
        self.planned.insert((at, act), at: place)
    }

    mutating func post(_ program: Int, _ change: @escaping (inout Pairing) -> Void) {
        if self.programs[program].isAlive { self.programs[program].work.append(.decide(change)) }
    }

    /// A program invites another one that it has found.
    mutating func invite(_ other: Int, by program: Int) {
        let (token, peer) = (self.programs[program].token, self.peer(other))
        self.post(program) { $0.invite(peer, to: token, .invitation(type: "t", context: nil), for: .seconds(20)) }
    }

    /// A program is killed.
    mutating func kill(_ index: Int) {
        let id = self.programs[index].id
        self.programs[index] = Program(id: id, pairing: Pairing(id: id), acceptance: self.programs[index].acceptance, isAlive: false)
        for other in self.programs.indices where other != index {
            self.links[index][other] = []
            self.links[other][index] = []
            if let session = self.programs[other].sessions[index] { self.post(other) { $0.detached(session, id) } }
            // The invitation of an inviter that is gone is cancelled.
            if let invitation = self.programs[other].incoming.removeValue(forKey: index) {
                self.post(other) { $0.resolved(invitation, by: id, .incoming, .cancelled) }
            }
        }
    }

    /// A program is killed, and starts again under its id.
    mutating func restart(_ index: Int) {
        self.kill(index)
        self.programs[index].isAlive = true
        self.programs[index].pairing.now = self.now
        self.programs[index].pairing.open(self.programs[index].token)
        for other in self.programs.indices where other != index {
            if let session = self.programs[other].sessions[index] { self.links[other][index].append(.resume(session)) }
            // The pending invitation is sent again on the new connection.
            if let invitation = self.programs[other].outgoing[index], let envelope = self.programs[other].envelopes[index] {
                self.links[other][index].append(.invite(invitation, envelope))
            }
        }
    }

    /// Goes on until nothing is left to do.
    mutating func run() {
        while self.steps < 100_000 {
            self.steps += 1
            var choices: [(Int, Int?)] = self.programs.indices.filter { !self.programs[$0].work.isEmpty }.map { ($0, nil) }
            for from in self.programs.indices {
                for to in self.programs.indices where !self.links[from][to].isEmpty { choices.append((from, to)) }
            }
            // Things that programs do fall between the others; the long times pass when nothing else happens.
            let isSoon = self.planned.first.map { $0.at <= self.now + .milliseconds(100) } ?? false
            self.busySince = choices.isEmpty ? nil : self.busySince ?? self.now
            let isLate = self.busySince.map { self.now - $0 > Self.latency } ?? false
            if let choice = choices.randomElement(using: &self.random),
                !isSoon || isLate || UInt8.random(in: 0..<8, using: &self.random) > 0
            {
                if let to = choice.1 { self.deliver(from: choice.0, to: to) } else { self.work(choice.0) }
            } else {
                guard !self.planned.isEmpty else { return }
                let next = self.planned.removeFirst()
                self.now = max(self.now, next.at)
                next.act(&self)
            }
        }
    }

    private mutating func work(_ index: Int) {
        switch self.programs[index].work.removeFirst() {
        case .decide(let change): self.decide(index, change)
        case .introduced(let introduction, let by):
            let id = self.programs[by].id
            self.decide(index) { $0.introduced(introduction, by: id) }
        }
    }

    // MARK: The engine

    private mutating func decide(_ index: Int, _ change: (inout Pairing) -> Void) {
        self.programs[index].pairing.now = self.now
        change(&self.programs[index].pairing)
        while let effect = self.programs[index].pairing.nextEffect() { self.carryOut(effect, of: index) }
    }

    private mutating func carryOut(_ effect: Pairing.Effect, of index: Int) {
        switch effect {
        case .invite(let id, let envelope, let time): self.begin(envelope, to: self.index(of: id), by: index, for: time)
        case .withdraw(let invitation):
            guard let other = self.programs[index].outgoing.first(where: { $0.value == invitation })?.key else { return }
            self.resolve(outgoing: other, of: index, .cancelled)
            self.links[index][other].append(.withdraw(invitation))
        case .accept(let invitation, let id): self.accept(invitation, of: self.index(of: id), by: index)
        case .decline(let invitation): self.decline(invitation, by: index)
        case .ask(let invitation, let peer, _, _):
            self.plan(within: .milliseconds(200)) { world in
                let isAccepted = world.programs[index].acceptance != .none
                if world.programs[index].acceptance == .first { world.programs[index].acceptance = .none }
                let token = isAccepted ? world.programs[index].token : nil
                world.post(index) { $0.answered(invitation, of: peer, into: token) }
            }
        case .leave(let id):
            let other = self.index(of: id)
            guard let session = self.programs[index].sessions.removeValue(forKey: other) else { return }
            self.links[index][other].append(.end(session))
            self.programs[index].pairing.left(session)
            self.post(index) { $0.ended(session, id) }
        case .check(let id, let token, _): self.post(index) { $0.checked(id, token, isGood: true) }
        case .tell(let token, let peer, let state):
            if token == self.programs[index].token { self.programs[index].told[self.index(of: peer.id), default: []].append(state) }
        case .joined, .parted, .reach: break
        case .introduce(var members, let id, let isFirst):
            let other = self.index(of: id)
            guard let session = self.programs[index].sessions[other] else { return }
            if isFirst { members.insert(.init(id: self.programs[index].id, name: "p\(index)", addresses: ["a:1"]), at: 0) }
            self.links[index][other].append(.introduction(Introduction(members: members), session))
        case .look(let id): self.programs[index].pairing.listed(id)
        case .wake(let time):
            let token = self.programs[index].token
            let at = self.now + time
            let place = self.planned.firstIndex { $0.at > at } ?? self.planned.endIndex
            self.planned.insert(
                (
                    at,
                    { world in
                        if world.programs[index].token == token { world.post(index) { $0.timePassed() } }
                    }
                ), at: place)
        }
    }

    // MARK: The node

    private mutating func begin(_ envelope: Envelope, to other: Int, by index: Int, for time: Duration) {
        if self.programs[index].sessions[other] != nil {
            return self.began(InvitationID(high: 0, low: self.fresh()), .outgoing, .accepted, with: other, by: index)
        }
        if let waiting = self.programs[index].incoming[other] {
            self.take(waiting, of: other, by: index)
            return self.began(waiting, .incoming, .accepted, with: other, by: index)
        }
        if let open = self.programs[index].outgoing[other] { return self.began(open, .outgoing, .pending, with: other, by: index) }
        let id = InvitationID(high: 0, low: self.fresh())
        self.programs[index].outgoing[other] = id
        self.programs[index].envelopes[other] = envelope
        self.links[index][other].append(.invite(id, envelope))
        self.began(id, .outgoing, .pending, with: other, by: index)
        let token = self.programs[index].token
        let at = self.now + time
        let place = self.planned.firstIndex { $0.at > at } ?? self.planned.endIndex
        self.planned.insert(
            (
                at,
                { world in
                    guard world.programs[index].token == token, world.programs[index].outgoing[other] == id else { return }
                    world.resolve(outgoing: other, of: index, .timedOut)
                    world.links[index][other].append(.withdraw(id))
                }
            ), at: place)
    }

    /// The node has answered the call that invites.
    private mutating func began(
        _ id: InvitationID, _ direction: Direction, _ state: Invitation.State, with other: Int, by index: Int
    ) {
        let invitation = Invitation(
            id: id, direction: direction, peerID: self.programs[other].id, peerName: "", context: [], state: state,
            created: WallTime(milliseconds: 0), end: WallTime(milliseconds: 0))
        self.programs[index].pairing.invitationBegan(self.programs[other].id, invitation)
    }

    private mutating func resolve(outgoing other: Int, of index: Int, _ state: Invitation.State) {
        guard let invitation = self.programs[index].outgoing.removeValue(forKey: other) else { return }
        let id = self.programs[other].id
        self.post(index) { $0.resolved(invitation, by: id, .outgoing, state) }
    }

    private mutating func resolve(incoming other: Int, of index: Int, _ state: Invitation.State) {
        guard let invitation = self.programs[index].incoming.removeValue(forKey: other) else { return }
        let id = self.programs[other].id
        self.post(index) { $0.resolved(invitation, by: id, .incoming, state) }
    }

    private mutating func take(_ session: SessionID, with other: Int, of index: Int) {
        self.programs[index].sessions[other] = session
        let peer = self.peer(other)
        self.post(index) { $0.attached(session, peer, isAllowed: true) }
    }

    private mutating func accept(_ invitation: InvitationID, of other: Int, by index: Int) {
        let id = self.programs[other].id
        guard self.programs[index].incoming[other] == invitation else {
            let hasSession = self.programs[index].sessions[other] != nil
            return self.programs[index].pairing.acceptanceFailed(id, hasSession: hasSession)
        }
        self.take(invitation, of: other, by: index)
        self.programs[index].pairing.agreed(id)
    }

    private mutating func take(_ invitation: InvitationID, of other: Int, by index: Int) {
        let session = SessionID(high: 1, low: self.fresh())
        self.resolve(incoming: other, of: index, .accepted)
        self.links[index][other].append(.answer(invitation, session))
        if let own = self.programs[index].outgoing[other] {
            self.resolve(outgoing: other, of: index, .accepted)
            self.links[index][other].append(.withdraw(own))
        }
        self.take(session, with: other, of: index)
    }

    private mutating func decline(_ invitation: InvitationID, by index: Int) {
        guard let other = self.programs[index].incoming.first(where: { $0.value == invitation })?.key else { return }
        self.resolve(incoming: other, of: index, .declined)
        self.links[index][other].append(.answer(invitation, nil))
    }

    private mutating func endSession(with other: Int, of index: Int) {
        guard let session = self.programs[index].sessions.removeValue(forKey: other) else { return }
        let id = self.programs[other].id
        self.post(index) { $0.ended(session, id) }
    }

    private mutating func deliver(from: Int, to: Int) {
        let id = self.programs[from].id
        let frame = self.links[from][to].removeFirst()
        guard self.programs[to].isAlive else { return }
        switch frame {
        case .invite(let invitation, let envelope):
            if let session = self.programs[to].sessions[from] {
                self.endSession(with: from, of: to)
                self.links[to][from].append(.end(session))
            }
            if self.programs[to].outgoing[from] != nil, self.programs[to].id < id { return }
            self.resolve(incoming: from, of: to, .cancelled)
            self.programs[to].incoming[from] = invitation
            let peer = self.peer(from)
            self.post(to) { $0.invited(Pairing.Asked(invitation: invitation, peer: peer, envelope: envelope)) }
        case .answer(let invitation, let session):
            guard self.programs[to].outgoing[from] == invitation else {
                if let session, self.programs[to].sessions[from] != session { self.links[to][from].append(.end(session)) }
                return
            }
            self.resolve(outgoing: from, of: to, session == nil ? .declined : .accepted)
            if let session { self.take(session, with: from, of: to) }
        case .withdraw(let invitation):
            if self.programs[to].incoming[from] == invitation { self.resolve(incoming: from, of: to, .cancelled) }
        case .resume(let session):
            guard self.programs[to].sessions[from] != session, self.programs[to].outgoing[from] == nil else { return }
            self.links[to][from].append(.end(session))
        case .end(let session): if self.programs[to].sessions[from] == session { self.endSession(with: from, of: to) }
        case .introduction(let introduction, let session):
            if self.programs[to].sessions[from] == session { self.programs[to].work.append(.introduced(introduction, by: from)) }
        }
    }
}

/// A seed's numbers.
struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        self.state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = self.state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
