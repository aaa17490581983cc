/// Generates a schedule action by action. Kinds, times and machines follow from the seed alone.
struct ScheduleMaker {
    private var random: SplitMix64
    private let honest: Int
    private let hostile: Int
    private let devices: Int
    private var milliseconds = 0
    /// The frequency of each verb: one schedule is mostly about invitations, another about crashes.
    private var weights: [(verb: Action.Verb, weight: Int)]
    private let total: Int
    /// Two peers that most actions concern: faults show when much happens to one pair in a short time.
    private let favourites: [Int]

    init(_ schedule: Schedule) {
        var random = SplitMix64(seed: schedule.seed, 1)
        self.honest = schedule.honest
        self.hostile = schedule.hostile
        self.devices = schedule.devices
        self.favourites = [random.below(schedule.honest), random.below(schedule.machines)]
        self.weights = Action.Verb.allCases.map { verb in
            let isPossible =
                (schedule.hostile > 0 || !Self.hostileVerbs.contains(verb)) && (schedule.devices > 0 || !Self.deviceVerbs.contains(verb))
            return (verb, isPossible ? Self.weight(verb) * random.one(of: [0, 1, 1, 2, 4]) : 0)
        }
        self.total = max(1, self.weights.reduce(0) { $0 + $1.weight })
        self.random = random
    }

    private static let hostileVerbs: [Action.Verb] = [.approach, .say, .forge, .swarm, .flood, .hangUp, .crowd]
    private static let deviceVerbs: [Action.Verb] = [
        .announce, .offer, .upload, .cancelOffer, .guess, .trustDevice, .changeDevices, .sendToDevice, .cancelMessage, .disturbDevice,
    ]

    private static func weight(_ verb: Action.Verb) -> Int {
        switch verb {
        case .invite: 24
        case .respond: 36
        case .see: 20
        case .trust: 14
        case .approach, .say: 12
        case .verify: 10
        case .match, .need, .accept, .cut, .readMessages, .answerFile: 8
        case .open: 12
        case .send: 30
        case .sendFile: 40
        case .inviteToGroup: 24
        case .sendToGroup: 16
        case .shareFile: 10
        case .removeMember: 5
        case .group, .endGroup: 2
        case .await, .settings, .reset, .crash, .disk, .lose, .acceptNext, .write: 6
        case .ask, .halve, .part, .suspend, .forge, .mismatch, .giveUp, .finish, .read, .abort, .again, .removeFile, .changeFile: 4
        case .withdraw, .leave, .rename, .restart, .restore, .jump, .slow, .shut, .forget, .discovery, .hangUp, .gone, .flood: 3
        case .crowd: 4
        case .swarm: 1
        case .offer, .upload: 120
        case .trustDevice: 30
        case .announce, .cancelOffer: 20
        case .changeDevices: 15
        case .sendToDevice: 80
        case .disturbDevice: 25
        case .cancelMessage: 6
        case .guess: 8
        }
    }

    /// A user who has been invited to a group, and will soon answer.
    private var invited: Int?
    /// A user whose invitation is being accepted, and may be withdrawn.
    private var inviter: Int?
    /// An action that interrupts a large transfer that has just begun.
    private var interruption: Action.Verb?

    /// A user who has just sent something to a device, and the device.
    private var sender: (person: Int, device: Int)?

    mutating func next() -> Action {
        if let (person, device) = self.sender {
            self.sender = nil
            if self.random.chance(30) {
                self.milliseconds += self.random.number(in: 0...400)
                let (verb, arguments): (Action.Verb, [Int]) = self.random.one(of: [
                    (.trustDevice, [person, device, 1, 0, 0]), (.restart, [person, 300]), (.changeDevices, [person, 0, 0]),
                    (.disturbDevice, [device, 1, 45_000, 0]), (.disturbDevice, [device, 3, 0, self.any()]),
                ])
                return Action(self.milliseconds, verb, arguments)
            }
        }
        if let person = self.inviter {
            self.inviter = nil
            if self.random.chance(50) {
                self.milliseconds += self.random.one(of: [0, 0, 0, 1, 2, 5, 20])
                return Action(self.milliseconds, .withdraw, [person, self.any()])
            }
        }
        if let verb = self.interruption {
            self.interruption = nil
            if self.random.chance(70) {
                // The bytes of a stream are in flight for only a millisecond.
                self.milliseconds += verb == .cut ? self.random.one(of: [0, 0, 0, 1, 2, 5, 20]) : self.random.number(in: 5...400)
                return Action(self.milliseconds, verb, self.arguments(of: verb))
            }
        }
        if let person = self.invited, self.random.chance(60) {
            self.invited = nil
            self.milliseconds += self.random.number(in: 30...600)
            return Action(self.milliseconds, .respond, [person, self.any(), 0, 0])
        }
        // Usually while other activity continues; sometimes long enough for deadlines.
        switch self.random.below(200) {
        case 0..<4: self.milliseconds += self.random.number(in: 5_000...40_000)
        case 4: self.milliseconds += self.random.one(of: [60_000, 130_000, 700_000])
        case 5..<60: self.milliseconds += self.random.number(in: 200...2_000)
        default: self.milliseconds += self.random.number(in: 0...40)
        }
        var place = self.random.below(self.total)
        var verb = Action.Verb.invite
        for (candidate, weight) in self.weights {
            guard place >= weight else {
                verb = candidate
                break
            }
            place -= weight
        }
        let arguments = self.arguments(of: verb)
        if verb == .inviteToGroup, arguments[2] < self.honest { self.invited = arguments[2] }
        switch verb {
        // The inviter withdraws the invitation while it is being accepted.
        case .respond where arguments[2] == 0:
            let other = self.favourites[arguments[0] == self.favourites[0] ? 1 : 0]
            if other < self.honest { self.inviter = other }
        case .sendFile where arguments[2] >= 300_000, .shareFile where arguments[2] >= 300_000: self.interruption = .reset
        case .write where arguments[2] >= 45_000: self.interruption = .cut
        case .sendToDevice: self.sender = (arguments[0], arguments[1])
        default: break
        }
        return Action(self.milliseconds, verb, arguments)
    }

    private mutating func person() -> Int { self.random.chance(60) ? self.favourites[0] : self.random.below(self.honest) }
    private mutating func peer() -> Int {
        self.random.chance(60) ? self.random.one(of: self.favourites) : self.random.below(self.honest + self.hostile)
    }
    private mutating func attacker() -> Int { self.honest + self.random.below(max(1, self.hostile)) }
    private mutating func device() -> Int { self.random.below(max(1, self.devices)) }
    private mutating func any() -> Int { self.random.below(1 << 20) }
    private mutating func naming() -> Int { self.random.one(of: [0, 0, 0, 1, 2]) }
    private mutating func duration() -> Int { self.random.one(of: [20, 20, 300, 300, 300, 3_000, 3_000, 12_000, 45_000]) }

    private mutating func arguments(of verb: Action.Verb) -> [Int] {
        switch verb {
        case .invite, .verify: [self.person(), self.peer(), self.random.one(of: [0, 1, 5, 30, 60]), self.naming()]
        case .send:
            [
                self.person(), self.peer(), self.random.one(of: [1, 1, 1, 2, 3, 8]), self.random.one(of: [0, 0, 0, 0, 1, 1, 1, 2, 3]),
                self.random.below(4),
            ]
        case .sendFile:
            [
                self.person(), self.peer(), self.random.one(of: [0, 1, 1_000, 1_001, 300_000, 700_000, 5_000_000, 5_000_001, 20_000_000]),
                self.random.one(of: [0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4]),
            ]
        case .group: [self.person(), self.any()]
        case .inviteToGroup: [self.person(), self.any(), self.peer(), self.random.one(of: [0, 5, 30, 60, 60])]
        case .endGroup: [self.person(), self.any(), self.random.below(3)]
        case .removeMember: [self.person(), self.any(), self.any(), self.random.below(2)]
        case .sendToGroup:
            [self.person(), self.any(), self.random.one(of: [1, 1, 2, 5]), self.random.one(of: [0, 0, 1, 1, 2]), self.random.below(4)]
        case .shareFile:
            [
                self.person(), self.any(), self.random.one(of: [0, 1_000, 300_000, 700_000, 5_000_000]),
                self.random.below(6),
            ]
        case .answerFile: [self.person(), self.any(), self.random.below(4)]
        case .removeFile: [self.person(), self.any(), self.random.below(3)]
        case .changeFile: [self.person(), self.any(), self.random.one(of: [1_000, 300_000, 5_000_000])]
        case .readMessages: [self.person(), self.random.one(of: [1, 3, 100])]
        case .again, .withdraw, .await, .leave, .accept, .gone, .finish, .read: [self.person(), self.any()]
        case .respond: [self.person(), self.any(), self.random.one(of: [0, 0, 0, 0, 1, 2]), self.random.below(2)]
        case .trust:
            [
                self.person(), self.peer(), self.random.one(of: [0, 0, 0, 0, 0, 0, 1, 2]),
                self.random.one(of: [0, 0, 0, 1, 10, 900]), self.naming(),
            ]
        case .match, .mismatch, .giveUp: [self.person(), self.peer()]
        case .settings: [self.person(), self.random.below(8), self.any()]
        case .rename: [self.person(), self.any()]
        case .ask: [self.person(), self.peer(), self.naming()]
        case .need: [self.person(), self.peer(), self.random.below(4)]
        case .crash: [self.person(), self.random.below(8), self.duration()]
        case .restart, .restore, .suspend, .shut: [self.person(), self.duration()]
        case .jump: [self.person(), self.random.one(of: [-1_700_000_000, -100_000, -3_600, -30, 5, 3_600, 1_000_000, 400_000_000])]
        case .disk: [self.person(), self.random.below(3), self.duration()]
        case .part: [self.person(), self.peer(), self.duration()]
        case .open: [self.person(), self.peer(), self.random.one(of: [1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 5, 70]), self.naming()]
        case .acceptNext: [self.person(), self.peer(), self.random.one(of: [0, 0, 1, 5, 60]), self.random.below(6)]
        case .write: [self.person(), self.any(), self.random.one(of: [1, 1_000, 45_000, 300_000, 700_000])]
        case .abort: [self.person(), self.any(), self.random.below(3)]
        case .flood: [self.attacker(), self.any(), self.random.one(of: [5, 40, 40, 300]), self.any()]
        case .reset, .cut: [self.any()]
        case .halve: [self.any(), self.random.below(2)]
        case .slow: [self.person(), self.peer(), self.random.one(of: [20, 200, 1_500]), self.duration()]
        case .see, .lose: [self.person(), self.peer(), self.random.below(3)]
        case .forget: [self.person()]
        case .discovery: [self.person(), self.random.below(3)]
        case .approach: [self.attacker(), self.person(), self.random.one(of: [0, 0, 0, 1, 2, 3])]
        case .say: [self.attacker(), self.any(), self.random.one(of: [1, 1, 2, 5, 40]), self.any()]
        case .forge: [self.attacker(), self.person(), self.peer(), self.any()]
        case .swarm: [self.attacker(), self.person(), self.random.one(of: [6, 20, 60]), self.any()]
        case .hangUp: [self.attacker(), self.any()]
        case .crowd: [self.attacker(), self.any(), self.random.one(of: [70, 130, 130, 300]), self.any()]
        case .announce: [self.device(), self.person(), self.random.one(of: [1, 1, 1, 5, 40, 300]), self.any()]
        case .offer: [self.device(), self.person(), self.random.one(of: [1, 1, 1, 1, 1, 1, 3, 20]), self.any()]
        case .upload: [self.device(), self.any(), self.any()]
        case .cancelOffer: [self.device(), self.person(), self.random.below(3), self.any()]
        case .guess: [self.device(), self.person(), self.random.one(of: [1, 2, 5, 30]), self.any()]
        case .trustDevice:
            [
                self.person(), self.device(), self.random.one(of: [0, 0, 0, 1, 2, 3, 4, 5]), self.random.one(of: [0, 0, 10, 900]),
                self.random.below(3),
            ]
        case .changeDevices: [self.person(), self.random.below(5), self.any()]
        case .sendToDevice:
            [self.person(), self.device(), self.random.below(6), self.random.one(of: [0, 0, 0, 1, 2, 3, 3, 4]), self.any()]
        case .cancelMessage: [self.person(), self.any()]
        case .disturbDevice: [self.device(), self.random.below(5), self.duration(), self.any()]
        }
    }
}
