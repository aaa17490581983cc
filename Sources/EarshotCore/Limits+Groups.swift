import EarshotWire

/// The limits of groups.
extension EarshotLimits {
    /// The maximum number of members of a group.
    package static let groupMembers = Int(WireLimits.groupMembers)
    /// The maximum number of seats, of leaves and of removals of one group that are kept, each.
    package static let groupRecords = WireLimits.groupRecords
    /// The number of seats held at which those that are not kept are dropped. Two sides' seats are compared together, and need this room.
    package static let groupSeatsHeld = 2 * groupRecords
    /// The highest seat number that an invitation may name and that is accepted. No peer rejoins so often. With the last possible number, a
    /// key would be excluded permanently.
    package static let groupSeatNumber: UInt32 = 1 << 20
    /// The time for which an inviter waits for the records of a peer that has answered with a seat that others vouched for.
    package static let groupProofTime: Duration = .seconds(10)
    /// The number of transfers of one file to a group that move at a time.
    package static let shareTransfers = 4
    /// The time after which a transfer that does not move lets another one of its share begin.
    package static let shareStallTime: Duration = .seconds(5)
    /// The maximum number of groups that this machine is in. As many dissolved groups are kept, so that other members hear of their end.
    package static let groups = 64
    /// The number of times per minute that a peer's request for missing records of a group is answered on one connection, and the number of
    /// times that a peer is asked at once.
    package static let groupExchanges = 8
    /// The time after which a peer may be asked again for missing records of a group. The resulting rate is lower than the rate at which a
    /// peer has to answer.
    package static let groupQuestionInterval: Duration = .seconds(10)
    /// The number of new records per second that are checked for one peer; others wait.
    package static let groupRecordsPerSecond = 64
    /// The number of records that are checked at once.
    package static let groupRecordsPerTurn = 16
    /// The number of invalid signatures that a peer may send at once before its next ones have to wait.
    package static let groupInvalidSignatures = 8
    /// The delay of the peer's next signatures for each invalid signature beyond that number.
    package static let groupInvalidSignatureInterval: Duration = .seconds(1)
    /// The number of a peer's records that may wait to be checked: all records of one group. Further records are dropped, and requested
    /// later.
    package static let groupRecordsWaiting = 3 * groupRecords + 1
    /// The longest random delay before a new member is dialled.
    package static let groupDialDelay: Duration = .seconds(2)
    /// The number of concurrent dials to members that only groups need.
    package static let groupDials = 4
    /// The number of connections up to which members are dialled without pending traffic.
    package static let groupLinks = 256
    /// The time after the last change of a group, at which its members are told its digest again, and records that are not kept are
    /// dropped.
    package static let groupQuiet: Duration = .seconds(3)
    /// The time for which changes of members' states are gathered before they are published.
    package static let groupNewsDelay: Duration = .milliseconds(50)
}
