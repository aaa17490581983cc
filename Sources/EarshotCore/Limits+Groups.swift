import EarshotWire

/// What groups are held to.
extension EarshotLimits {
    /// How many members a group has at most.
    package static let groupMembers = Int(WireLimits.groupMembers)
    /// How many seats, leaves and removals of one group are kept at most, of each.
    package static let groupRecords = WireLimits.groupRecords
    /// How many seats are held at most until those are forgotten that are not kept: what two sides hold together is compared as a whole.
    package static let groupSeatsHeld = 2 * groupRecords
    /// The highest number of a seat that an invitation may name, and that is let in: nobody comes in again so often, and with the last number a
    /// key would be out for good.
    package static let groupSeatNumber: UInt32 = 1 << 20
    /// How long an inviter waits for the records of a peer that has answered by a seat that others have vouched for.
    package static let groupProofTime: Duration = .seconds(10)
    /// How many transfers of one thing to a group move at a time.
    package static let shareTransfers = 4
    /// For how long nothing of one may move before another one of its share begins as well.
    package static let shareStallTime: Duration = .seconds(5)
    /// How many groups this machine is in at most; as many more that are over are kept for others to hear of it.
    package static let groups = 64
    /// How often a minute a peer is given what it lacks of a group, on one connection; and how often it is asked at once.
    package static let groupExchanges = 8
    /// After how long a peer may be asked once more for what is lacking here of a group: not as often as it has to answer.
    package static let groupQuestionInterval: Duration = .seconds(10)
    /// How many records that are new here are checked a second for one peer; the others wait.
    package static let groupRecordsPerSecond = 64
    /// How many of them are checked at once.
    package static let groupRecordsPerTurn = 16
    /// How many invalid signatures a peer may send at once before its next ones have to wait.
    package static let groupInvalidSignatures = 8
    /// How long each invalid signature beyond those delays the peer's next ones.
    package static let groupInvalidSignatureInterval: Duration = .seconds(1)
    /// How many of a peer's records wait to be checked: all of one group. What comes beyond is dropped, and asked for later.
    package static let groupRecordsWaiting = 3 * groupRecords + 1
    /// When members that are wanted are dialled after they are known: at random, up to this.
    package static let groupDialDelay: Duration = .seconds(2)
    /// How many members are dialled at once that nothing else wants.
    package static let groupDials = 4
    /// Up to how many connections members are dialled without anything to say.
    package static let groupLinks = 256
    /// How long after a change of a group its members hear again how it stands, and what it does not need is forgotten.
    package static let groupQuiet: Duration = .seconds(3)
    /// How long changes of members' states are gathered before they are published.
    package static let groupNewsDelay: Duration = .milliseconds(50)
}
