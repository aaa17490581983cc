import EarshotWire
import NIOCore
import OrderedCollections

/// Metrics of a node for a monitoring system: current values, and totals of this run.
package struct NodeMetrics: Sendable, Hashable {
    /// Totals of this run, which never decrease.
    package struct Counters: Sendable, Hashable {
        /// Invitations received.
        package var invitationsReceived: UInt64 = 0
        /// Invitations of either direction that reached a final state, by state.
        package var invitationsResolved: [Invitation.State: UInt64] = [:]
        /// Messages committed to the inbox, or passed to live readers.
        package var messagesReceived: UInt64 = 0
        /// Bytes of the bodies of received messages.
        package var messageBytesReceived: UInt64 = 0
        /// Status changes of outgoing messages at their recipients, by status.
        package var messageStatuses: [Message.Status: UInt64] = [:]
        /// Resources that reached a final state.
        package var resourcesFinished: [ResourceOutcome: UInt64] = [:]
        /// Bytes that finished resources had moved, by direction.
        package var resourceBytes: [Direction: UInt64] = [:]
        /// Events published.
        package var events: UInt64 = 0
    }

    /// The key by which finished resources are counted.
    package struct ResourceOutcome: Sendable, Hashable {
        /// The direction: received or sent.
        package let direction: Direction
        /// The final state.
        package let state: Resource.State

        package init(direction: Direction, state: Resource.State) {
            self.direction = direction
            self.state = state
        }
    }

    /// The counts of the node's status.
    package let counts: NodeStatus.Counts
    /// Open connections, by protection.
    package let connections: [Protection: Int]
    /// Pending invitations, by direction.
    package let pendingInvitations: [Direction: Int]
    /// Groups that this machine is in or is joining.
    package let groups: Int
    /// Memberships of other peers in these groups, by state.
    package let groupMembers: [Group.Member.State: Int]
    /// Running transfers, by direction.
    package let transfers: [Direction: Int]
    /// Unacknowledged messages over all peers.
    package let queuedMessages: Int
    /// The size of the unacknowledged messages, in bytes.
    package let queuedBytes: Int
    /// Changes that wait for the store.
    package let queuedStoreWork: Int
    /// Bytes that the spool holds or has reserved.
    package let spoolBytes: UInt64
    /// The maximum size of the spool, in bytes.
    package let spoolQuota: UInt64
    /// Failed handshakes, by error code.
    package let handshakeFailures: [EarshotError.Code: UInt64]
    /// LocalSend announcements that were dropped.
    package let droppedAnnouncements: DroppedAnnouncements
    /// The totals of this run.
    package let counters: Counters
}

extension NodeMetrics.Counters {
    /// Counts messages whose events are published together, and the bytes of their bodies.
    mutating func countMessages(_ count: Int, bytes: Int) {
        self.events &+= UInt64(count)
        self.messagesReceived &+= UInt64(count)
        self.messageBytesReceived &+= UInt64(bytes)
    }

    /// Counts a published event.
    mutating func count(_ kind: NodeEvent.Kind) {
        self.events &+= 1
        switch kind {
        case .invitationReceived: self.invitationsReceived &+= 1
        case .invitationResolved(let invitation): self.invitationsResolved[invitation.state, default: 0] &+= 1
        case .messageReceived(let message):
            self.messagesReceived &+= 1
            self.messageBytesReceived &+= UInt64(message.body.readableBytes)
        case .messageStatus(_, let recipient): self.messageStatuses[recipient.status, default: 0] &+= 1
        case .resourceFinished(let row):
            self.resourcesFinished[NodeMetrics.ResourceOutcome(direction: row.direction, state: row.state), default: 0] &+= 1
            self.resourceBytes[row.direction, default: 0] &+= row.transferred
        default: break
        }
    }
}

extension Node {
    /// Returns metrics for a monitoring system.
    package func metrics() async -> NodeMetrics {
        let spoolBytes = await self.spool.heldBytes()
        let connections = self.core.allFacts.compactMap { $0.link.flatMap { self.links[$0] } }
        let pending = self.core.invitations(all: false)
        let groups = self.core.groupList
        let members = groups.flatMap(\.members).filter { $0.peerID != self.id }
        let unacknowledged = self.core.unacknowledged
        let running = [Direction.incoming: self.core.openTransfers(.incoming), .outgoing: self.core.openTransfers(.outgoing)]
        return NodeMetrics(
            counts: self.status().counts, connections: Self.tally(connections.map(\.protection)),
            pendingInvitations: Self.tally(pending.map(\.direction)), groups: groups.count,
            groupMembers: Self.tally(members.map(\.state)), transfers: running.filter { $0.value > 0 },
            queuedMessages: unacknowledged.messages, queuedBytes: unacknowledged.bytes, queuedStoreWork: self.storeQueue.count,
            spoolBytes: spoolBytes, spoolQuota: self.configuration.quota, handshakeFailures: self.transport.handshakeFailures.byCode,
            droppedAnnouncements: self.devices?.droppedAnnouncements ?? DroppedAnnouncements(),
            counters: self.counters)
    }

    private static func tally<Key: Hashable>(_ keys: [Key]) -> [Key: Int] {
        keys.reduce(into: [:]) { $0[$1, default: 0] += 1 }
    }
}
