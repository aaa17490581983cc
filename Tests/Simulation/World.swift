import DequeModule
import EarshotCore
import EarshotWire
import OrderedCollections

/// A world of machines and the network between them, in which a schedule is played. All randomness comes from the schedule's seed, and no
/// hash table is iterated, so the same schedule gives the same run.
package struct World {
    let schedule: Schedule
    var clock = Clock()
    var network: Network
    var machines: [Machine] = []
    var links: [Wire] = []
    var dials: [Dial] = []
    /// The number of links so far between two machines.
    var pairs: OrderedDictionary<[Int], Int> = [:]
    var dataConnections: [DataConnection] = []
    /// The number of messages that were sent.
    var drafts = 0
    /// The number of resources, and of disk operations for them.
    var resources = 0
    var shelfWorks = 0
    /// The ids that a hostile peer may have learned.
    var invitationIDs: [InvitationID] = []
    var sessionIDs: [SessionID] = []
    var heardGroups: OrderedDictionary<GroupID, HeardGroup> = [:]
    var streamIDs: [StreamID] = []
    var resourceIDs: [ResourceID] = []
    var devices = Devices()
    /// The last check of idle pairs.
    var lastLook: Instant = .zero
    /// Whether the faults have stopped.
    var isCalm = false
    package private(set) var steps = 0
    package internal(set) var counts = Counts()
    package internal(set) var violation: Violation?
    var trace: Trace?
    var effects: [Effect] = []

    package init(_ schedule: Schedule, trace: Trace? = nil) {
        self.schedule = schedule
        self.network = Network(machines: schedule.machines)
        self.trace = trace
        for index in 0..<schedule.machines {
            var random = SplitMix64(seed: schedule.seed, 2, UInt64(index))
            let isHostile = index >= schedule.honest
            let identities = (0..<(isHostile ? 64 : 1)).map { PeerID(subjectPublicKeyInfo: [UInt8(index), UInt8($0)]) }
            // Two machines may share a name, and a hostile one uses another's.
            let name = isHostile ? Self.names[0] : Self.names[random.chance(15) ? 0 : index]
            var settings = CoreSettings()
            settings.policy.encryption = random.one(of: [.required, .required, .optional, .optional, .optional, .none])
            settings.policy.fromUnknown = random.one(of: [.ask, .ask, .ask, .accept, .reject])
            settings.policy.fromTrusted = random.one(of: [.accept, .accept, .ask, .reject])
            settings.policy.pairedOnly = random.chance(10)
            settings.policy.acceptResources = random.one(of: [.session, .ask])
            settings.maximumResourceSize = random.chance(10) ? 1_000_000 : nil
            settings.putsInPlace = random.chance(60)
            settings.groupInvitations = index % 3 == 1 ? .accept : .ask
            settings.name = try? DisplayName(name)
            if schedule.devices > 0 {
                var random = SplitMix64(seed: schedule.seed, 22, UInt64(index))
                settings.devices.isOn = random.chance(90)
                settings.devices.pin = random.chance(40) ? Self.pin : nil
                settings.devices.offerTime = .seconds(random.one(of: [5, 30, 60]))
            }
            var clocks = SplitMix64(seed: schedule.seed, 12, UInt64(index))
            self.machines.append(
                Machine(
                    index: index, isHostile: isHostile, identities: identities, name: name, settings: settings,
                    forgetsTime: clocks.chance(10), queue: NodeQueue(SplitMix64(seed: schedule.seed, 13, UInt64(index)))))
            // Wrong from the start, by years in either direction.
            if clocks.chance(15) { self.machines[index].skew = .seconds(clocks.one(of: [-1_700_000_000, 400_000_000])) }
        }
        for index in 0..<schedule.honest {
            self.start(index)
            for peer in 0..<schedule.machines where peer != index { self.see(peer, by: index, interface: 0) }
        }
    }

    static let names = [
        "ada", "bea", "cyd", "dot", "eve", "fay", "gus", "hal", "ida", "jon", "kay", "lee", "mia", "ned", "oda", "pam",
    ]

    // MARK: Running

    /// Plays everything up to a time, or to the first violation.
    mutating func run(until end: Instant) {
        while self.violation == nil, let next = self.clock.next, next <= end {
            guard let what = self.clock.advance() else { return }
            self.happen(what)
        }
        // Advances even if no event occurs by then: the next may be far away.
        if self.violation == nil { self.clock.wait(until: end) }
    }

    /// Plays a recorded schedule.
    package mutating func play() {
        for action in self.schedule.actions { self.clock.plan(.action(action), at: .milliseconds(action.milliseconds)) }
        self.run(until: .milliseconds(self.schedule.end))
        self.settle()
    }

    /// Generates a schedule while it is played, until the given number of steps.
    package static func make(_ schedule: Schedule, steps: Int, trace: Trace? = nil) -> (world: World, schedule: Schedule) {
        var world = World(schedule, trace: trace)
        var made = schedule
        var maker = ScheduleMaker(schedule)
        while world.violation == nil, world.steps < steps, made.actions.count < 4 * steps {
            let action = maker.next()
            // Before all other events of that moment, as in a recorded schedule.
            world.run(until: .milliseconds(action.milliseconds) - .nanoseconds(1))
            guard world.violation == nil else { break }
            made.actions.append(action)
            world.clock.wait(until: .milliseconds(action.milliseconds))
            world.happen(.action(action))
        }
        // Not before the violation.
        made.end = max((made.actions.last?.milliseconds ?? 0) + 100, Int(world.clock.now / .milliseconds(1)) + 1)
        world.run(until: .milliseconds(made.end))
        world.settle()
        return (world, made)
    }

    private mutating func happen(_ what: Happening) {
        if let machine = what.machine(self.links, self.dials), self.machines[machine].suspendedUntil != nil {
            self.machines[machine].missed.append(what)
            return
        }
        switch what {
        case .action(let action):
            self.checkRestingPairs()
            self.perform(action)
        case .input(let machine, let run, let input):
            guard self.isRunning(machine, run) else { return }
            if Self.isHandedIn(input) { self.yield(.input(input), to: machine) } else { self.hand(input, to: machine) }
        case .turns(let machine, let run): if self.isRunning(machine, run) { self.takeTurn(of: machine) }
        case .timer(let machine, let run, let number):
            guard self.isRunning(machine, run), self.machines[machine].timer?.number == number else { return }
            self.machines[machine].timer = nil
            self.hand(.deadline, to: machine)
        case .commits(let machine, let run): if self.isRunning(machine, run) { self.commit(on: machine) }
        case .works(let machine, let run): if self.isRunning(machine, run) { self.work(on: machine) }
        case .starts(let machine, let run): if self.machines[machine].run == run { self.start(machine) }
        case .resumes(let machine): self.resume(machine)
        case .drains(let machine, let run): if self.isRunning(machine, run) { self.drain(machine) }
        case .dials(let dial): self.dialNext(dial)
        case .answers(let dial, let machine): self.answered(dial, by: machine)
        case .proven(let link, let side, let dial): self.proven(link, side, dial)
        case .arrives(let link, let side): self.arrive(link, side)
        case .breaks(let link, let side, let end): self.end(link, side, end)
        case .listens(let link, let side): self.listen(link, side)
        case .hangsUp(let link): self.hangUp(link)
        case .dataDials(let dial): self.dialData(dial)
        case .dataAttached(let machine, let run, let connection, let attempt, let began):
            if self.isRunning(machine, run) { self.attach(connection, to: machine, attempt, since: began) }
        case .dataLost(let machine, let run, let connection): if self.isRunning(machine, run) { self.loseData(machine, connection) }
        case .accepts(let machine, let run, let stream):
            if self.isRunning(machine, run) { self.call(.stream(.accept(stream)), on: machine) }
        case .streamBytes(let machine, let run, let stream): if self.isRunning(machine, run) { self.receiveBytes(stream, of: machine) }
        case .moves(let machine, let run, let number): if self.isRunning(machine, run) { self.move(number, on: machine) }
        case .resourceBytes(let machine, let run, let number): if self.isRunning(machine, run) { self.receiveBytes(number, on: machine) }
        case .receives(let machine, let run, let attempt): if self.isRunning(machine, run) { self.receive(attempt) }
        case .shelves(let machine, let run, let work): if self.isRunning(machine, run) { self.work(work, on: machine) }
        }
    }

    func isRunning(_ machine: Int, _ run: Int) -> Bool { self.machines[machine].run == run && self.machines[machine].core != nil }

    func isAwake(_ machine: Int) -> Bool {
        self.machines[machine].isHostile || self.machines[machine].core != nil && self.machines[machine].suspendedUntil == nil
    }

    /// Returns the machine with an id.
    func machine(of id: PeerID) -> Int? { self.machines.firstIndex { $0.identities.contains(id) } }

    // MARK: One input

    /// Hands an input to a machine like `Node.handle`: its effects are carried out, in order, before the next input, and inputs that arrive
    /// meanwhile wait.
    mutating func hand(_ input: Input, to machine: Int) {
        self.machines[machine].inputs.append(input)
        guard !self.machines[machine].isCarryingOut else { return }
        self.machines[machine].isCarryingOut = true
        while self.violation == nil, let input = self.machines[machine].inputs.popFirst() { self.step(input, of: machine) }
        self.machines[machine].isCarryingOut = false
        self.armTimer(of: machine)
    }

    private mutating func step(_ input: Input, of machine: Int) {
        self.steps += 1
        let now = self.now(of: machine)
        self.trace?.note(input, of: machine, at: self.clock.now)
        let before = self.look(at: machine, before: input)
        var effects: [Effect] = []
        swap(&effects, &self.effects)
        self.machines[machine].core?.handle(input, at: now, into: &effects)
        self.check(input, effects, of: machine, at: now, before)
        for (index, effect) in effects.enumerated() {
            if let crash = self.machines[machine].crash, index >= crash.effects, !self.machines[machine].isStopping {
                self.counts[.lostEffects] += effects.count - index
                self.crash(machine, pause: crash.pause)
                break
            }
            self.trace?.note(effect, of: machine)
            self.counts.note(effect)
            self.check(effect, of: machine, input)
            self.carryOut(effect, on: machine)
        }
        effects.removeAll(keepingCapacity: true)
        swap(&effects, &self.effects)
        if let crash = self.machines[machine].crash, self.machines[machine].core != nil { self.crash(machine, pause: crash.pause) }
        self.checkRest(of: machine, at: now, input)
    }

    private mutating func armTimer(of machine: Int) {
        guard let next = self.machines[machine].core?.nextDeadline else { return }
        if let timer = self.machines[machine].timer, timer.at <= next { return }
        self.machines[machine].timers += 1
        let number = self.machines[machine].timers
        self.machines[machine].timer = (next, number)
        self.clock.plan(.timer(machine, run: self.machines[machine].run, number: number), at: self.clock.instant(of: next))
    }

    mutating func fail(_ invariant: Violation.Invariant, _ words: String) {
        guard self.violation == nil else { return }
        self.violation = Violation(invariant: invariant, words: words, at: self.clock.now)
    }
}
