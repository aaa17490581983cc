/// A violated invariant of a world.
package struct Violation: Error, Sendable, CustomStringConvertible {
    /// The invariants. Invariants without a check beside their name are checked in `Invariants.swift` and `EndInvariants.swift`.
    package enum Invariant: String, Sendable, CaseIterable {
        /// Every call is answered once, in time, and none after the machine has stopped.
        case answers
        /// A call that failed has changed nothing, in memory and on disk.
        case unchanged
        /// Everything that a caller or a peer was told is on disk by then.
        case committed
        /// Memory and disk agree whenever no decision is under way, and no trace of decisions is left. Queued data waits for its full time,
        /// whatever the wall clock shows.
        case kept
        /// The trust in a peer is the latest that a user was told.
        case opinions
        /// A session id has the same members everywhere, and a peer has one session.
        case sessions
        /// At the end both sides of each pair are in the same session or in none, and it is attached. Before the end, this holds for all
        /// pairs whose connection is idle.
        case agreement
        /// No effect uses a connection that does not exist.
        case links
        /// Each charge is released once.
        case holds
        /// Every table stays within its limit.
        case limits
        /// No deadline is overdue.
        case deadlines
        /// A blocked peer receives no more than a rejected one, and no event mentions it.
        case blocked
        /// Each message is stored and published once, and those of one sender in order.
        case order
        /// At the end no message waits between two peers in a session.
        case drained
        /// Both sides use the two ends of one data connection, or none, and each is told once.
        case dataPaths = "data-paths"
        /// No command refers to a missing stream. Events report each stream once as open and once as closed. Honest machines follow the
        /// order of frames. At the end both sides have the same streams and bytes.
        case streams
        /// A resource that either side reports as complete is on the receiver's disk, with its bytes and its row, as it was sent. A
        /// resource has one mover at a time. At the end no resumable transfer stands still.
        case transfers
        /// No frame of a group is sent to a peer that is not a member. At the end all members hold the same records, and are connected.
        case groups
        /// No device is in a session, and none is listed that has shown no certificate. A device's files are received if a user or the
        /// settings have accepted them, from their sender alone, once, and with the offered size and digest. Reserved space is released.
        /// A device is sent one thing at a time, which is stopped once it is over, and nothing again that the device may have. Outcomes are
        /// as the device knows them.
        case devices
    }

    package let invariant: Invariant
    package let words: String
    let at: Instant

    package var description: String { "\(self.invariant.rawValue): \(self.words) (at \(self.at))" }
}
