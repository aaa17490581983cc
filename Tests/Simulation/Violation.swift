/// What a world has found wrong.
package struct Violation: Error, Sendable, CustomStringConvertible {
    /// What has to hold. Where each is checked, its words are in `Invariants.swift` and in `EndInvariants.swift`.
    package enum Invariant: String, Sendable, CaseIterable {
        /// Every call is answered once, in its time, and none after the machine has stopped.
        case answers
        /// A call that failed has changed nothing, in memory and on disk.
        case unchanged
        /// What a caller or a peer was told is on disk by then.
        case committed
        /// Memory and disk agree whenever no decision is under way, and nothing is left of those that were. What waits on disk does so for its
        /// time, whatever the wall clock shows.
        case kept
        /// What is thought of a peer is what was answered to the person who said so last.
        case opinions
        /// A session id has the same members everywhere, and a peer has one session.
        case sessions
        /// In the end both sides of each pair are in the same session or in none, and it is attached. Before that they are so wherever their
        /// connection has nothing under way.
        case agreement
        /// Nothing is asked of a connection that is not there.
        case links
        /// What is charged is given back, once.
        case holds
        /// Every table stays within its limit.
        case limits
        /// Nothing that is due is left.
        case deadlines
        /// A blocked peer hears no more than a rejected one, and nobody hears of it.
        case blocked
        /// A message is stored and told once, and those of one sender in their order.
        case order
        /// In the end nothing waits between two that are in a session.
        case drained
        /// Both sides use the two ends of one data connection, or none, and each is told once.
        case dataPaths = "data-paths"
        /// Nothing is asked of what moves a stream's bytes when there is no such stream, events tell once that one is there and that it is
        /// over, honest machines keep to the order of frames, and in the end both sides have the same streams and bytes.
        case streams
        /// A resource that either side has told to be complete is on the receiver's disk, its bytes and its row, as it was sent; a resource
        /// has one mover at a time, and in the end nothing that can go on stands still.
        case transfers
        /// Nothing is sent in a group to who is no member of it; in the end all its members hold the same records, and talk.
        case groups
    }

    package let invariant: Invariant
    package let words: String
    let at: Instant

    package var description: String { "\(self.invariant.rawValue): \(self.words) (at \(self.at))" }
}
