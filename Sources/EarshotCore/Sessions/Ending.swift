/// Something that others depend on, and that has ended. What becomes of each of them is one table, ``fate(of:)``, and the node's `end(_:of:_:)`
/// and the core's `spread(_:of:)` have it happen: nothing else ends the dependents of a connection, a session, or a peer's trust.
///
/// The protocol's specification has the part of it that the other side sees, in its article about ends.
package enum Ending: Sendable, Hashable, CaseIterable {
    /// The peer's connection: lost, closed, or superseded.
    case connection
    /// The session with the peer, by either side's word.
    case session
    /// The trust in a peer, by a person, by its time, or by an authority's, where no session carries what waits for it.
    case trust
    /// The invitation that things waited for: declined by a person there.
    case declinedInvitation
    /// The same where it came to nothing otherwise: no answer came, or the peer was not reached.
    case invitation

    /// What depends on such a thing.
    package enum Dependent: Sendable, Hashable, CaseIterable {
        /// Messages that a caller waits for.
        case messages
        /// Messages in the outbox on disk.
        case queuedMessages
        /// Data connections, and attempts at them.
        case dataConnections
        /// The comparison of digits: what of it was said, and so whether it can be gone on with.
        case comparison
        /// Transfers of both directions, but for queued ones. The body of a caller cannot be read again: one that has begun ends where
        /// others wait.
        case transfers
        /// Outgoing transfers that wait for their peer by a person's wish.
        case queuedTransfers
        /// Streams of this side's that the peer has not accepted.
        case openingStreams
        /// All other streams: the peer opens its own again.
        case streams
    }

    /// What becomes of a dependent.
    package enum Fate: Sendable, Hashable {
        /// It does not depend on that.
        case stays
        /// It goes on when there is another.
        case waits
        case ends
    }

    /// The table.
    package func fate(of dependent: Dependent) -> Fate {
        switch (self, dependent) {
        case (.connection, .messages), (.connection, .queuedMessages), (.connection, .transfers), (.connection, .queuedTransfers),
            (.connection, .openingStreams):
            .waits
        case (.connection, .dataConnections), (.connection, .comparison), (.connection, .streams): .ends
        // A comparison is of two keys.
        case (.session, .comparison): .stays
        case (.session, .messages), (.session, .queuedMessages), (.session, .dataConnections), (.session, .transfers),
            (.session, .queuedTransfers), (.session, .openingStreams), (.session, .streams):
            .ends
        // Nothing else is there without a session.
        case (.trust, .dataConnections), (.trust, .comparison), (.trust, .streams): .stays
        case (.trust, .messages), (.trust, .queuedMessages), (.trust, .transfers), (.trust, .queuedTransfers), (.trust, .openingStreams):
            .ends
        case (.declinedInvitation, .dataConnections), (.declinedInvitation, .comparison): .stays
        case (.declinedInvitation, .messages), (.declinedInvitation, .queuedMessages), (.declinedInvitation, .transfers),
            (.declinedInvitation, .queuedTransfers), (.declinedInvitation, .openingStreams), (.declinedInvitation, .streams):
            .ends
        // The next invitation may bring them further.
        case (.invitation, .queuedMessages), (.invitation, .queuedTransfers): .waits
        case (.invitation, .dataConnections), (.invitation, .comparison): .stays
        case (.invitation, .messages), (.invitation, .transfers), (.invitation, .openingStreams), (.invitation, .streams): .ends
        }
    }
}
