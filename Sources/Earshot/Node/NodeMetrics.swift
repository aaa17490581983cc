import EarshotWire
import NIOCore
import OrderedCollections

/// Figures of a node for a monitoring system: how much there is now, and how much there has been in this run.
public struct NodeMetrics: Sendable, Hashable {
    /// How much there has been in this run; only ever rises.
    public struct Counters: Sendable, Hashable {
        /// Invitations that came in.
        public package(set) var invitationsReceived: UInt64 = 0
        /// Invitations of either direction that got a final state, by it.
        public package(set) var invitationsResolved: [Invitation.State: UInt64] = [:]
        /// Messages committed to the inbox, or handed to live readers.
        public package(set) var messagesReceived: UInt64 = 0
        /// Bytes of their bodies.
        public package(set) var messageBytesReceived: UInt64 = 0
        /// What became of outgoing messages at their recipients: changes to each status.
        public package(set) var messageStatuses: [Message.Status: UInt64] = [:]
        /// Resources that got a final state.
        public package(set) var resourcesFinished: [ResourceOutcome: UInt64] = [:]
        /// Bytes that they had moved by then.
        public package(set) var resourceBytes: [Direction: UInt64] = [:]
        /// Everything that was told to readers of the events.
        public package(set) var events: UInt64 = 0
    }

    /// How resources are counted.
    public struct ResourceOutcome: Sendable, Hashable {
        /// Received, or sent.
        public let direction: Direction
        /// A final state.
        public let state: Resource.State

        package init(direction: Direction, state: Resource.State) {
            self.direction = direction
            self.state = state
        }
    }

    /// How much of everything there is, as the status has it.
    public let counts: NodeStatus.Counts
    /// Present connections by what protects them.
    public let connections: [Protection: Int]
    /// Invitations that wait for a decision, by direction.
    public let pendingInvitations: [Direction: Int]
    /// Groups that this machine is in, or is joining.
    public let groups: Int
    /// The other members of these, each as often as it is in one, by whether they can be talked to.
    public let groupMembers: [Group.Member.State: Int]
    /// Resources on their way, by direction.
    public let transfers: [Direction: Int]
    /// Messages that are not acknowledged yet, over all peers.
    public let queuedMessages: Int
    /// What they take, in bytes.
    public let queuedBytes: Int
    /// Changes that wait for the disk.
    public let queuedStoreWork: Int
    /// Bytes that the spool holds or has reserved.
    public let spoolBytes: UInt64
    /// The most that it may hold.
    public let spoolQuota: UInt64
    /// Handshakes that came to nothing, by why.
    public let handshakeFailures: [EarshotError.Code: UInt64]
    /// How much there has been.
    public let counters: Counters
}

extension NodeMetrics.Counters {
    /// Counts messages whose events are told together, and the bytes of their bodies.
    mutating func countMessages(_ count: Int, bytes: Int) {
        self.events &+= UInt64(count)
        self.messagesReceived &+= UInt64(count)
        self.messageBytesReceived &+= UInt64(bytes)
    }

    /// Counts what is told to the readers of the events.
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
    /// Figures for a monitoring system.
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
