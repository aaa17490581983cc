package import EarshotWire
import OrderedCollections

/// Views of a core that only tests need.
extension NodeCore {
    /// The sizes of bounded or mutually dependent collections.
    package struct Figures: Sendable, Hashable {
        package var records = 0
        /// The counted number of peers that are listed only because discovery sees them.
        package var discovered = 0
        package var sightings = 0
        package var mostSightings = 0
        package var sightingKeys = 0
        package var links = 0
        package var mutedLinks = 0
        package var lateAnswers = 0
        package var decidedInvitations = 0
        package var pendingInvitations = 0
        /// Invitations that are marked as having a decision under way.
        package var decidingInvitations = 0
        package var strangersInvitations = 0
        package var strangersComparisons = 0
        /// Sessions that are marked as being written.
        package var agreements = 0
        /// Acceptances by the settings that are marked as waiting in the queue of decisions.
        package var dueAcceptances = 0
        package var names = 0
        package var configured = 0
        package var deadlines = 0
        package var dataPaths = 0
        /// The highest number of dials for data to one peer that are marked as under way.
        package var dataDials = 0
        /// The number of conversations that have had messages, and the number of all conversations.
        package var outboxes = 0
        package var conversations = 0
        /// The number of calls that wait for the outcomes of messages.
        package var sending = 0
        /// The number of changes of the outbox that are marked as under way.
        package var keeping = 0
        package var openStreams = 0
        package var closedStreams = 0
        /// The highest number for one peer, also in the next three lines.
        package var waitingStreams = 0
        package var outgoingStreams = 0
        package var incomingStreams = 0
        package var movingStreams = 0
        package var streamAcceptors = 0
        package var openTransfers = 0
        package var finishedTransfers = 0
        /// The highest number for one peer, also in the next two lines.
        package var waitingOffers = 0
        package var incomingMovers = 0
        package var outgoingMovers = 0
        /// The number of changes of rows for which a caller or a peer waits.
        package var transferCommits = 0
        /// The number of transfers for which their sender is charged.
        package var chargedTransfers = 0
        package var devices = 0
        /// The devices that no user has decided about.
        package var seenDevices = 0
        package var deviceOffers = 0
        /// The highest number for one device, also in `mostDeviceSessions`.
        package var mostDeviceOffers = 0
        /// The offers of untrusted devices that wait for a user.
        package var strangersOffers = 0
        package var deviceOfferBytes = 0
        package var deviceSessions = 0
        package var mostDeviceSessions = 0
        /// The highest number of uploads of one session.
        package var mostDeviceUploads = 0
        package var lateDeviceRefusals = 0
        /// The offers that have ended while their space was being reserved.
        package var abandonedDeviceOffers = 0
        package var wrongPINs = 0
        /// The places of announcements that a datagram answers if they cannot be reached.
        package var unreachedDevices = 0
        /// The messages and resources in the queues for devices that are over.
        package var endedShipments = 0
        /// The devices within reach for which something waits, and is not being sent.
        package var reachableShipments = 0
    }

    package var figures: Figures {
        var figures = Figures()
        figures.records = self.records.count
        figures.discovered = self.discovered.count
        figures.sightingKeys = self.discovered.sightings
        figures.links = self.links.count
        figures.mutedLinks = self.links.muted.count
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
            // An invitation to a group waits for its inviter, and an offer for space. Neither is a decision.
            if invitation.group == nil, invitation.offer == nil, self.invitations[invitation.id]?.isDeciding == true {
                figures.decidingInvitations += 1
            }
        }
        self.countDevices(in: &figures)
        return figures
    }

    private func countDevices(in figures: inout Figures) {
        let devices = self.devices
        figures.devices = devices.count
        figures.seenDevices = devices.all.count { !$0.isStored }
        figures.deviceOffers = devices.offers.count
        figures.deviceOfferBytes = devices.offerBytes
        figures.deviceSessions = devices.sessions.count
        (figures.lateDeviceRefusals, figures.abandonedDeviceOffers) = (devices.lateCount, devices.abandonedCount)
        (figures.wrongPINs, figures.unreachedDevices) = (devices.pins.count, devices.announcements.unreachedCount)
        var senders: OrderedDictionary<DeviceSender, (offers: Int, sessions: Int)> = [:]
        for offer in devices.offers.values {
            if offer.sender.id != nil { senders[offer.sender, default: (0, 0)].offers += 1 }
            let isTrusted = offer.sender.id.map { devices[$0]?.trust == .trusted } == true
            if offer.stage == .asking, !isTrusted { figures.strangersOffers += 1 }
        }
        for session in devices.sessions.values {
            senders[session.sender, default: (0, 0)].sessions += 1
            figures.mostDeviceUploads = max(figures.mostDeviceUploads, session.movingCount)
        }
        figures.mostDeviceOffers = senders.values.reduce(0) { max($0, $1.offers) }
        figures.mostDeviceSessions = senders.values.reduce(0) { max($0, $1.sessions) }
        for id in devices.shipments.devices {
            figures.endedShipments += devices.shipments.all(for: id).count { !self.isOpen($0, at: id) }
            guard let device = devices[id], device.isNearby, device.place != nil, device.trust != .blocked, self.settings.devices.isOn
            else {
                continue
            }
            if devices.shipments.current(id) == nil { figures.reachableShipments += 1 }
        }
    }

    private func isOpen(_ cargo: DeviceCargo, at device: PeerID) -> Bool {
        switch cargo {
        case .message(let id): self.outgoing[id]?.recipients.contains { $0.peerID == device && !$0.status.isFinal } == true
        case .resource(let id): self.transfers[id]?.isOpen == true
        }
    }

    /// The outgoing messages, pending or finished, except unreliable ones.
    package var outgoingMessages: [OutgoingMessage] { self.outgoing.all }
    package func outbox(of peer: PeerID) -> Outbox? { self.traffic[Conversation(with: peer)]?.outbox }
    package func outbox(in conversation: Conversation) -> Outbox? { self.traffic[conversation]?.outbox }
    package func isAttached(_ conversation: Conversation) -> Bool { self.carrier(of: conversation) != nil }
    package var queueUsage: QueueUsage { self.outgoing.queue }
    /// The number of noted receipts that are not being written yet. ``unnotedCount`` is the number of receipts that senders have not noted.
    package var gatheringNotes: Int { self.readReceipts.gatheringNotes }
    package var isNoting: Bool { self.readReceipts.isNoting }
    package var unnotedCount: Int { self.readReceipts.count }
    package func unnoted(of peer: PeerID) -> Int { self.readReceipts.all(of: peer).count }

    /// The number of decisions that are not on disk yet.
    package var undecidedCount: Int { self.decisions.count }

    /// The number of changes of transfers' rows that are not on disk yet, and for which a caller or a peer waits.
    package var uncommittedTransfers: Int { self.transfers.commitCount }

    /// Whether a call waits for a stream, or for the end of a stream that it has opened.
    package func isAwaitingStream(_ call: CallID) -> Bool {
        self.streams.acceptors.contains { $0.call == call }
            || self.streams.ids(.openOutgoing).contains { self.streams[$0]?.opener == call }
    }

    /// Whether a call waits for a resource to begin or to end.
    package func isAwaitingResource(_ call: CallID) -> Bool {
        self.transfers.ids(.open).contains { self.transfers[$0]?.caller == call }
    }

    /// Whether a call waits to be let into a group.
    package func isAwaitingGroup(_ call: CallID) -> Bool { self.groups.all.contains { $0.joiners.contains(call) } }

    /// The number of data connections and attempts to make one.
    package var dataPathCount: Int { self.dataPaths.count }

    /// The stored rows, according to memory.
    package var keptPeers: [StoredPeer] {
        self.records.values.compactMap(\.standing.stored) + self.devices.all.compactMap(\.standing.stored)
    }
    package var keptSessions: [StoredSession] { self.records.values.compactMap(\.session.session) }

    /// The stored rows of a group according to memory, with the members that follow from them.
    package struct KeptGroup: Sendable {
        package let stored: StoredGroup
        package let members: [PeerID]
        /// The candidates for whom there is no room.
        package let full: [PeerID]
        package let digest: GroupRecordHash
    }

    package var keptGroups: [KeptGroup] { self.groups.all.filter { $0.invitation == nil }.map(self.kept) }

    /// Returns a group that this machine is in.
    package func keptGroup(_ id: GroupID) -> KeptGroup? { self.groups[id].flatMap { $0.isJoined ? self.kept($0) : nil } }

    private func kept(_ held: HeldGroup) -> KeptGroup {
        let membership = held.records.membership
        return KeptGroup(
            stored: held.stored(held.records.all), members: membership.members.map(\.peer), full: membership.full.map(\.peer),
            digest: held.records.digest)
    }

    /// Whether another core would give the same answers to queries about peers, sessions, streams, invitations, comparisons and stored
    /// rows.
    package func showsSame(as other: NodeCore) -> Bool {
        let (own, others) = (self.peers, other.peers)
        guard own.count == others.count, zip(own, others).allSatisfy({ $0.id == $1.id && $0.showsSame(as: $1) }) else { return false }
        return self.sessions == other.sessions && self.invitations(all: true) == other.invitations(all: true)
            && self.allStreams == other.allStreams && self.groupList == other.groupList && self.keptPeers == other.keptPeers
            && self.keptSessions == other.keptSessions
            && own.allSatisfy { self.verification(of: $0.id) == other.verification(of: $0.id) }
    }
}
