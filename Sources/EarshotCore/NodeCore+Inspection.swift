package import EarshotWire
import OrderedCollections

/// What tests see of a core, and no other part of the node needs.
extension NodeCore {
    /// How much there is of what is bounded, or has to agree with something else.
    package struct Figures: Sendable, Hashable {
        package var records = 0
        /// Listed for nothing but that discovery sees them, as it is counted.
        package var discovered = 0
        package var sightings = 0
        package var mostSightings = 0
        package var sightingKeys = 0
        package var links = 0
        package var mutedLinks = 0
        package var lateAnswers = 0
        package var decidedInvitations = 0
        package var pendingInvitations = 0
        /// Invitations that a decision is said to be under way about.
        package var decidingInvitations = 0
        package var strangersInvitations = 0
        package var strangersComparisons = 0
        /// Sessions that are said to be on their way to the disk.
        package var agreements = 0
        /// Acceptances by the settings that are said to wait for their turn.
        package var dueAcceptances = 0
        package var names = 0
        package var configured = 0
        package var deadlines = 0
        package var dataPaths = 0
        /// Dials for data that are said to be under way to one peer, the most.
        package var dataDials = 0
        /// Conversations in which there were messages, of how many.
        package var outboxes = 0
        package var conversations = 0
        /// Calls that wait for what becomes of messages.
        package var sending = 0
        /// Changes of the outbox that are said to be under way.
        package var keeping = 0
        package var openStreams = 0
        package var closedStreams = 0
        /// Of one peer, the most.
        package var waitingStreams = 0
        package var outgoingStreams = 0
        package var incomingStreams = 0
        package var movingStreams = 0
        package var streamAcceptors = 0
        package var openTransfers = 0
        package var finishedTransfers = 0
        /// Of one peer, the most.
        package var waitingOffers = 0
        package var incomingMovers = 0
        package var outgoingMovers = 0
        /// Changes of rows that a caller or a peer waits for.
        package var transferCommits = 0
        /// Transfers for which their sender is charged.
        package var chargedTransfers = 0
    }

    package var figures: Figures {
        var figures = Figures()
        figures.records = self.records.count
        figures.discovered = self.discoveredOnly.count
        figures.sightingKeys = self.sightedPeers.count
        figures.links = self.linkPeers.count
        figures.mutedLinks = self.mutedLinks.count
        figures.lateAnswers = self.lateAnswers.count
        figures.pendingInvitations = self.invitations.pendingCount
        figures.strangersInvitations = self.strangers.invitations.places.count
        figures.strangersComparisons = self.strangers.comparisons.places.count
        figures.names = self.names.count
        figures.configured = self.configuredDials.count
        figures.deadlines = self.deadlines.count
        figures.dataPaths = self.dataPaths.count
        figures.dataDials = self.dataPaths.mostDials
        figures.outboxes = self.traffic.count
        figures.sending = self.batches.count
        figures.keeping = self.keeping.count
        figures.openStreams = self.streams.count(.open)
        figures.closedStreams = self.streams.count(.finished)
        figures.streamAcceptors = self.streams.acceptors.count
        figures.openTransfers = self.transfers.count(.open)
        figures.finishedTransfers = self.transfers.count(.finished)
        figures.transferCommits = self.transfers.commitCount
        figures.chargedTransfers = self.transfers.ids(.open).count { self.transfers[$0]?.hold != nil }
        for record in self.records.values {
            figures.conversations += 1 + record.groups.shared.count
            figures.sightings += record.presence.sightings.count + record.presence.displaced.count
            figures.mostSightings = max(figures.mostSightings, record.presence.sightings.count)
            figures.waitingStreams = max(figures.waitingStreams, self.streams.count(of: record.id, .waiting))
            figures.outgoingStreams = max(figures.outgoingStreams, self.streams.count(of: record.id, .openOutgoing))
            figures.incomingStreams = max(figures.incomingStreams, self.streams.count(of: record.id, .openIncoming))
            figures.movingStreams = max(figures.movingStreams, self.streams.count(of: record.id, .opensData))
            figures.waitingOffers = max(figures.waitingOffers, self.transfers.count(of: record.id, .waiting))
            figures.incomingMovers = max(figures.incomingMovers, self.transfers.count(of: record.id, .incomingMover))
            figures.outgoingMovers = max(figures.outgoingMovers, self.transfers.count(of: record.id, .outgoingMover))
            if record.session.agreement != nil { figures.agreements += 1 }
            if record.session.isAcceptanceDue { figures.dueAcceptances += 1 }
        }
        for invitation in self.invitations.list(all: true) {
            if invitation.state != .pending { figures.decidedInvitations += 1 }
            // One to a group waits for its inviter's word, and not for the disk.
            if invitation.group == nil, self.invitations[invitation.id]?.isDeciding == true { figures.decidingInvitations += 1 }
        }
        return figures
    }

    /// Messages that wait or have been sent, but for unreliable ones.
    package var outgoingMessages: [OutgoingMessage] { self.outgoing.all }
    package func outbox(of peer: PeerID) -> Outbox? { self.traffic[Conversation(with: peer)]?.outbox }
    package func outbox(in conversation: Conversation) -> Outbox? { self.traffic[conversation]?.outbox }
    package func isAttached(_ conversation: Conversation) -> Bool { self.carrier(of: conversation) != nil }
    package var queueUsage: QueueUsage { self.outgoing.queue }
    /// Receipts of which senders have taken note, and that are not on their way to the disk; and those of which they have not.
    package var gatheringNotes: Int { self.notes.count }
    package var unnotedCount: Int { self.unnotedReads.count }
    package func unnoted(of peer: PeerID) -> Int { self.unnotedReads.all(of: peer).count }

    /// Decisions that are not on disk yet.
    package var undecidedCount: Int { self.decisions.count }

    /// Changes of rows of transfers that are not on disk yet, and that a caller or a peer waits for.
    package var uncommittedTransfers: Int { self.transfers.commitCount }

    /// Whether a call waits for a stream, or for the end of one that it has opened.
    package func isAwaitingStream(_ call: CallID) -> Bool {
        self.streams.acceptors.contains { $0.call == call }
            || self.streams.ids(.openOutgoing).contains { self.streams[$0]?.opener == call }
    }

    /// Whether a call waits for the end of a resource, or for it to have begun.
    package func isAwaitingResource(_ call: CallID) -> Bool {
        self.transfers.ids(.open).contains { self.transfers[$0]?.caller == call }
    }

    /// Whether a call waits to be let into a group.
    package func isAwaitingGroup(_ call: CallID) -> Bool { self.groups.all.contains { $0.joiners.contains(call) } }

    /// Data connections, and attempts at them.
    package var dataPathCount: Int { self.dataPaths.count }

    /// What memory has of what is kept.
    package var keptPeers: [StoredPeer] { self.records.values.compactMap(\.standing.stored) }
    package var keptSessions: [StoredSession] { self.records.values.compactMap(\.session.session) }

    /// What memory has of a group that is kept, and who is in it by that.
    package struct KeptGroup: Sendable {
        package let stored: StoredGroup
        package let members: [PeerID]
        /// Those for whom there is no room.
        package let full: [PeerID]
        package let digest: GroupRecordHash
    }

    package var keptGroups: [KeptGroup] { self.groups.all.filter { $0.invitation == nil }.map(self.kept) }

    /// One that this machine is in.
    package func keptGroup(_ id: GroupID) -> KeptGroup? { self.groups[id].flatMap { $0.isJoined ? self.kept($0) : nil } }

    private func kept(_ held: HeldGroup) -> KeptGroup {
        let membership = held.records.membership
        return KeptGroup(
            stored: held.stored(held.records.all), members: membership.members.map(\.peer), full: membership.full.map(\.peer),
            digest: held.records.digest)
    }

    /// Whether nobody who asks would be told anything else by the other: of peers, sessions, streams, invitations, comparisons
    /// and what is kept.
    package func showsSame(as other: NodeCore) -> Bool {
        let (own, others) = (self.peers, other.peers)
        guard own.count == others.count, zip(own, others).allSatisfy({ $0.id == $1.id && $0.showsSame(as: $1) }) else { return false }
        return self.sessions == other.sessions && self.invitations(all: true) == other.invitations(all: true)
            && self.allStreams == other.allStreams && self.groupList == other.groupList && self.keptPeers == other.keptPeers
            && self.keptSessions == other.keptSessions
            && own.allSatisfy { self.verification(of: $0.id) == other.verification(of: $0.id) }
    }
}
