/// The end of something that others depend on. A single table, ``fate(of:)``, decides about each dependent, and the node's `end(_:of:_:)`
/// and the core's `spread(_:of:)` apply it: nothing else ends the dependents of a connection, a session, or a peer's trust.
///
/// The part that the peer sees is specified in the protocol's article about ends.
package enum Ending: Sendable, Hashable, CaseIterable {
    /// The peer's connection: lost, closed, or superseded.
    case connection
    /// The session with the peer, ended by either side.
    case session
    /// The trust in a peer, ended by a user, by its expiry, or by an authority's, if no session carries the dependents.
    case trust
    /// The invitation that dependents waited for, declined by the user there.
    case declinedInvitation
    /// The invitation that dependents waited for, failed otherwise: no answer came, or the peer was not reached.
    case invitation

    /// A dependent.
    package enum Dependent: Sendable, Hashable, CaseIterable {
        /// Messages that a caller waits for.
        case messages
        /// Messages in the outbox on disk.
        case queuedMessages
        /// Data connections, and attempts at them.
        case dataConnections
        /// The comparison of digits: what was said in it, and so whether it can continue.
        case comparison
        /// Transfers of both directions, except queued ones. A caller's body cannot be read again, so a transfer of one that has begun ends
        /// where others wait.
        case transfers
        /// Outgoing transfers that wait for their peer at the user's request.
        case queuedTransfers
        /// Streams of this side that the peer has not accepted.
        case openingStreams
        /// All other streams: the peer reopens its own.
        case streams
    }

    /// The consequence for a dependent.
    package enum Fate: Sendable, Hashable {
        /// The end does not affect the dependent.
        case stays
        /// The dependent continues when there is another connection, session or invitation.
        case waits
        case ends
    }

    /// Returns the fate of a dependent.
    package func fate(of dependent: Dependent) -> Fate {
        switch (self, dependent) {
        case (.connection, .messages), (.connection, .queuedMessages), (.connection, .transfers), (.connection, .queuedTransfers),
            (.connection, .openingStreams):
            .waits
        case (.connection, .dataConnections), (.connection, .comparison), (.connection, .streams): .ends
        // A comparison is of two keys, and needs no session.
        case (.session, .comparison): .stays
        case (.session, .messages), (.session, .queuedMessages), (.session, .dataConnections), (.session, .transfers),
            (.session, .queuedTransfers), (.session, .openingStreams), (.session, .streams):
            .ends
        // The others exist only with a session.
        case (.trust, .dataConnections), (.trust, .comparison), (.trust, .streams): .stays
        case (.trust, .messages), (.trust, .queuedMessages), (.trust, .transfers), (.trust, .queuedTransfers), (.trust, .openingStreams):
            .ends
        case (.declinedInvitation, .dataConnections), (.declinedInvitation, .comparison): .stays
        case (.declinedInvitation, .messages), (.declinedInvitation, .queuedMessages), (.declinedInvitation, .transfers),
            (.declinedInvitation, .queuedTransfers), (.declinedInvitation, .openingStreams), (.declinedInvitation, .streams):
            .ends
        // The next invitation may succeed.
        case (.invitation, .queuedMessages), (.invitation, .queuedTransfers): .waits
        case (.invitation, .dataConnections), (.invitation, .comparison): .stays
        case (.invitation, .messages), (.invitation, .transfers), (.invitation, .openingStreams), (.invitation, .streams): .ends
        }
    }
}
