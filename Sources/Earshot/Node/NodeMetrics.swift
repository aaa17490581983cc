import EarshotWire
import NIOCore
import OrderedCollections

/// Metrics of a node for a monitoring system: current values, and totals of this run.
public struct NodeMetrics: Sendable, Hashable {
    /// Totals of this run, which never decrease.
    public struct Counters: Sendable, Hashable {
        /// Invitations received.
        public package(set) var invitationsReceived: UInt64 = 0
        /// Invitations of either direction that reached a final state, by state.
        public package(set) var invitationsResolved: [Invitation.State: UInt64] = [:]
        /// Messages committed to the inbox, or passed to live readers.
        public package(set) var messagesReceived: UInt64 = 0
        /// Bytes of the bodies of received messages.
        public package(set) var messageBytesReceived: UInt64 = 0
        /// Status changes of outgoing messages at their recipients, by status.
        public package(set) var messageStatuses: [Message.Status: UInt64] = [:]
        /// Resources that reached a final state.
        public package(set) var resourcesFinished: [ResourceOutcome: UInt64] = [:]
        /// Bytes that finished resources had moved, by direction.
        public package(set) var resourceBytes: [Direction: UInt64] = [:]
        /// Events published.
        public package(set) var events: UInt64 = 0
    }

    /// The key by which finished resources are counted.
    public struct ResourceOutcome: Sendable, Hashable {
        /// The direction: received or sent.
        public let direction: Direction
        /// The final state.
        public let state: Resource.State

        package init(direction: Direction, state: Resource.State) {
            self.direction = direction
            self.state = state
        }
    }

    /// The counts of the node's status.
    public let counts: NodeStatus.Counts
    /// Open connections, by protection.
    public let connections: [Protection: Int]
    /// Pending invitations, by direction.
    public let pendingInvitations: [Direction: Int]
    /// Groups that this machine is in or is joining.
    public let groups: Int
    /// Memberships of other peers in these groups, by state.
    public let groupMembers: [Group.Member.State: Int]
    /// Running transfers, by direction.
    public let transfers: [Direction: Int]
    /// Unacknowledged messages over all peers.
    public let queuedMessages: Int
    /// The size of the unacknowledged messages, in bytes.
    public let queuedBytes: Int
    /// Changes that wait for the store.
    public let queuedStoreWork: Int
    /// Bytes that the spool holds or has reserved.
    public let spoolBytes: UInt64
    /// The maximum size of the spool, in bytes.
    public let spoolQuota: UInt64
    /// Failed handshakes, by error code.
    public let handshakeFailures: [EarshotError.Code: UInt64]
    /// The totals of this run.
    public let counters: Counters
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
    public func metrics() async -> NodeMetrics {
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
            counters: self.counters)
    }

    private static func tally<Key: Hashable>(_ keys: [Key]) -> [Key: Int] {
        keys.reduce(into: [:]) { $0[$1, default: 0] += 1 }
    }
}
