import EarshotWire

/// The implementation's constants (the protocol's are in EarshotWire): each with its unit, and why.
package enum EarshotLimits {
    // Connections
    /// How long a stranger may take from the first byte to a proven key.
    package static let handshakeTime: Duration = .seconds(10)
    /// Unproven connections at a time; the oldest gives way, so that squatters cannot keep others out.
    package static let unprovenConnections = 32
    /// Unproven connections from one IPv4 address or IPv6 /64; the oldest of them gives way.
    package static let unprovenConnectionsPerAddress = 4
    /// How long a connection that we close is still held open for what was written to get out, and for the other side to close too.
    package static let closingTime: Duration = .seconds(1)
    /// What is read on a connection behind its last word, only to be dropped, in bytes: what was on its way. A peer that sends on must not have
    /// the loop read for it, at the cost of all others, for as long as it takes it to close.
    package static let closingRead = 512 * 1024
    /// Strangers that are remembered to have spoken TLS, while the daemon runs; the oldest gives way.
    package static let rememberedTLSStrangers = 4096
    /// Silence after which a connection is asked for a sign of life.
    package static let pingAfter: Duration = .seconds(10)
    /// Silence after which the peer is taken for dead: within 30 s, which callers count on, with room for the timer.
    package static let deadAfter: Duration = .seconds(25)
    /// How long a TCP connect may take: on a LAN an answer takes milliseconds, a lost first SYN is repeated after one second.
    package static let connectTime: Duration = .seconds(3)
    /// How long a peer may take to answer a ping that a person asked for.
    package static let pingTime: Duration = .seconds(5)
    /// How long accepting pauses when the process has run out of descriptors: the backlog of a flood is worked off in pieces of what
    /// descriptors there are, with a pause after each, and that must not take long once the flood is over.
    package static let acceptBackOff: Duration = .milliseconds(100)
    /// How long it is until that is said again.
    package static let acceptWarning: Duration = .seconds(60)
    /// How long a proven connection that nothing needs is kept.
    package static let idleConnectionTime: Duration = .seconds(60)
    /// Proven connections that nothing needs (fresh keys cost a stranger nothing); the oldest gives way.
    package static let idleConnections = 128
    /// Pauses between attempts to reach a peer again: short enough to be back within 10 s of the path's return. A peer of the settings is dialled
    /// after half of one at the least, by this machine's id.
    package static let redialDelays: [Duration] = [.zero, .seconds(1), .seconds(2), .seconds(4), .seconds(5)]
    /// How long it is until something that was noted of a peer or of a queued message, and that the disk did not take, is written again.
    package static let keepPause: Duration = .seconds(5)
    /// How often a configured peer that is connected (or blocked) is looked at: a lost connection is noticed at once anyway.
    package static let configuredCheck: Duration = .seconds(5)
    /// Addresses of one configured host that are tried, the resolver's first ones.
    package static let addressesPerHost = 8
    /// Sessions with peers that are not trusted, up to which settings may accept more of them (`from_unknown = accept`); past it a person is
    /// asked. Keys cost a stranger nothing, and a session is kept for good.
    package static let strangersSessions = 256
    /// Sightings kept of one peer, the latest ones: anyone may advertise under its id, as often as they like. A machine is seen once for
    /// every interface and protocol that it shares with this one.
    package static let sightingsPerPeer = 16
    /// Of one peer, sightings that had to give way and come back when others go: as many as one backend of discovery reports in all.
    package static let displacedSightings = 4096
    /// Addresses kept of one peer that discovery sees.
    package static let addressesPerPeer = 32
    /// Of these, how many one attempt to reach it tries, each for up to `connectTime`; the next attempt goes on behind them.
    package static let addressesPerDial = 8
    /// The higher peer id waits this long before it dials a lost peer, so that the two seldom dial at once.
    package static let higherPeerDialDelay: Duration = .milliseconds(500)
    /// How long the side whose connection was superseded leaves it to the one that superseded it.
    package static let supersededDialDelay: Duration = .seconds(2)
    /// Two connections proven within this time of each other, one dialled by each side, were dialled at once.
    package static let simultaneousDialTime: Duration = .seconds(5)
    /// What a peer in a session with us may make this machine hold before it is read from no more: its frames until they are dealt with, and
    /// the work that they cause until it is done, in bytes.
    package static let unprocessedBytes = 4 * 1024 * 1024
    /// The same for a peer that is in no session: what it may ask for is short.
    package static let strangersUnprocessedBytes = 128 * 1024
    /// What all peers hold together, in bytes, from which on each may hold no more than `crowdedUnprocessedBytes`. A flood of short messages
    /// takes three times as much in the end (the events' backlog, the store's cache, buffers of the connections): with 24 MiB twelve members
    /// cost 66 MiB, and a flood may cost 64.
    package static let allUnprocessedBytes = 12 * 1024 * 1024
    /// What each may hold then, and how much of a frame that is not whole a connection without a session may have sent then.
    package static let crowdedUnprocessedBytes = 64 * 1024
    /// What they have held together, in bytes, after which the heap's free pages are given back once it is little again: what a flood has
    /// left between what stays would be counted as the daemon's for good.
    package static let muchUnprocessedBytes = 1024 * 1024
    /// After how many connections that came in they are given back, too: handshakes leave them behind in pieces.
    package static let manyUnprovenConnections = 128
    /// How long that waits: floods that follow one another cost it once.
    package static let heapTrimDelay: Duration = .seconds(1)
    /// How much may wait on one connection to be decoded: the largest frame, one read, and what the kernel had when the peer ended it.
    package static let undecodedBytes = 2 * 1024 * 1024
    /// How much is read at once from a control connection whose peer is in a session with us. Its buffer stays with the connection until that is
    /// closed, and of those that are closing a flood makes a hundred.
    package static let messagesRead = 64 * 1024
    /// How much work of one connection the node is given at once, in units of ``EarshotWire/Frame/work``, a few microseconds each: connections
    /// take turns, and a hundred that flood must not hold up a friend's message for longer than a person notices.
    package static let turnWork = 1024
    /// The same for a peer that is in no session with us.
    package static let strangersTurnWork = 128
    /// How long a turn may take, as far as the last ones have shown: where a unit of work takes longer than those few microseconds, a turn has
    /// fewer of them.
    package static let turnTime: Duration = .milliseconds(2)
    /// The fewest units of a turn that takes too long: what an ordinary frame is, so that each turn gets on.
    package static let shortestTurnWork = 16
    /// How many turns of one connection may be with the node. It decodes on the node's own loop, where a second one would be dealt with no
    /// sooner and keep others waiting.
    package static let turnsAhead = 1
    /// Unreliable messages that are as much work as one unit: they change nothing, and come by the hundred.
    package static let unreliableMessagesPerWork = 4
    /// What a peer is charged for each change of the store that it causes, until it is on disk, in bytes: about what a row and what follows
    /// from it take. So one that is no member has 128 of them at a time, a member 4,096.
    package static let storeWorkCharge = 1024
    /// The same for each job and each timer that a peer causes, until it has returned or come due: few beside `crowdedUnprocessedBytes`, since
    /// some of them (a stream that waits for a reader, an offer for a person) last for minutes.
    package static let waitCharge = 256
    /// What a blocked peer is charged for each invitation until it is declined, in bytes: 32 at a time.
    package static let blockedAnswerCharge = 4096
    /// How long the node works through what has come before it lets its callers have a turn.
    package static let nodeTurn: Duration = .milliseconds(1)
    /// Answers that may wait to be written on one connection before it is no longer read, in bytes with a share for each write:
    /// a peer that asks and asks and never reads must not fill the memory.
    package static let unwrittenBytes = 4 * 1024 * 1024
    /// What may wait so on all connections together, in bytes, from which on each is read only with less than `crowdedUnwrittenBytes`: a
    /// hundred such peers must not fill it either.
    package static let allUnwrittenBytes = 8 * 1024 * 1024
    package static let crowdedUnwrittenBytes = 32 * 1024
    /// The same on one whose peer is in a session or a group with this one: what crowds both of two peers that send each other much is not to
    /// have each wait for the other to read.
    package static let crowdedMemberUnwrittenBytes = 512 * 1024
    /// What may wait on one connection of this side's own accord, in bytes, while the socket takes nothing for `unreadTime`: the messages on
    /// their way in four conversations, or those of one that were given up one after the other.
    package static let unreadBytes = 4 * queuedMessageBytes
    package static let unreadTime: Duration = .seconds(120)
    /// The same while the socket takes something now and then, once it has been more than `unreadBytes` for `deadAfter`: a peer could keep it by
    /// reading a little. Many groups with one peer have as much at once.
    package static let mostUnreadBytes = 16 * queuedMessageBytes

    // Certificates
    /// Certificates that a peer may show at all; TLS keeps them as long as the connection lasts, in several times their size.
    package static let shownCertificates = 16
    /// What they take together, in bytes of DER: one has one to two thousand, and one with an RSA key of 8192 bits three.
    package static let chainBytes = 16 * 1024
    /// What may come in before the TLS handshake is over, in bytes: the certificates and everything else.
    package static let handshakeBytes = chainBytes + 8 * 1024
    /// What a piece of a TLS handshake may take of its event loop for the next one to follow at once: ordinary ones take half of that.
    package static let handshakeTurn: Duration = .milliseconds(5)
    /// How long the loop is for everything else after a longer piece, in multiples of its time: strangers have a fifth of it.
    package static let handshakePause = 4
    /// Certificates in a chain that is followed, a peer's own first and without the authority's: real ones have one to three.
    package static let chainCertificates = 4
    /// Signatures that are checked for one chain: one a certificate, and as many again for authorities that share a name.
    package static let chainSignatures = 8
    /// Chains that wait to be examined. `unprovenConnections` of them are connections that came in; the others are of peers that this machine
    /// dials, a thousand at once after a start.
    package static let waitingChains = 1024

    // Data connections
    /// Resources with at least so many bytes to go travel over a data connection; for fewer it costs more than it brings.
    package static let dataThreshold: UInt64 = 4 * 1024 * 1024
    /// Bytes that may wait between a data connection and its reader, and between its writer and the kernel.
    package static let dataInFlight = 1024 * 1024
    /// What is read from a data connection at once, and decrypted: it stays in a core's cache until it is hashed and written, and the few
    /// buffers that it takes are small beside what else a daemon needs.
    package static let dataRead = 256 * 1024
    /// How long the side that has sent everything over a data connection waits for the other one to close it.
    package static let dataEndTime: Duration = .seconds(5)
    /// How long a transfer waits for the other side to dial, or to ask to be dialled.
    package static let dataDialTime: Duration = .seconds(15)
    /// Dials of one peer for data at a time: more at once would push each other out there (`unprovenConnectionsPerAddress`). Where none is
    /// answered the last of many do not have their turn within `dataDialTime`, and go without.
    package static let dataDials = 2
    /// Data connections that are lost one after another, without a byte, before a transfer goes on over the control connection.
    package static let dataFailures = 3
    /// Silence after which the kernel asks whether the other end of a data connection still has it (keep-alive, RFC 1122 section 4.2.3.6).
    /// Nothing else would tell a receiver that its path is dead. No limit on unacknowledged bytes: it would also end a connection whose
    /// reader only pauses (tcp(7), `TCP_USER_TIMEOUT`).
    package static let dataProbeAfter: Duration = .seconds(5)
    /// How long it waits for an answer before it asks again.
    package static let dataProbeInterval: Duration = .seconds(3)
    /// Questions without an answer after which the connection is lost: 14 s of silence in all, well within `resourceStallTime`.
    package static let dataProbes = 3
    /// How much the kernel is given to send at once, in one frame.
    package static let dataExtent: UInt64 = 1024 * 1024
    /// How much is read, hashed and written at once: it stays in a core's cache.
    package static let dataBlock = 256 * 1024
    /// How much is read ahead at once from a plaintext data connection (`ReadAhead`): each block costs two threads a wake-up.
    package static let readAheadBlock = 1024 * 1024
    /// Bytes that must have come before the kernel wakes the thread that waits for a plaintext data connection (`SO_RCVLOWAT`, socket(7)):
    /// else it wakes for every segment, and acknowledges as often.
    package static let dataWake = 256 * 1024

    // Discovery
    /// Peers in the list that only discovery knows of; it adds no more. Those that we deal with, and those that connect, do not count.
    package static let discoveredPeers = 2048
    /// Ids that are only advertised and begin as what a caller has given: so many are named where no other peer answers to that.
    package static let advertisedIDsNamed = 4
    /// Sightings of this node's own peer id at other machines that are remembered.
    package static let identityCopies = 16
    /// How long a peer stays listed after its last advertisement went.
    package static let lossGrace: Duration = .seconds(15)
    /// How long the thread of the store, and that of the spool, may be busy with one thing before a watchdog takes it for stuck: a commit
    /// behind other writers, and a file of many gigabytes that is hashed and brought to a slow disk.
    package static let storePatience: Duration = .seconds(120)
    package static let spoolPatience: Duration = .seconds(900)
    /// The same for discovery's threads: a call over D-Bus to a daemon that hangs takes 25 s, and a few may follow each other.
    package static let discoveryPatience: Duration = .seconds(120)
    /// When the inbox is first pruned by age after the start, and how long afterwards each time.
    package static let firstPruning: Duration = .seconds(60)
    package static let pruningInterval: Duration = .seconds(3600)
    /// How often it is noted on disk for how long daemons have run: as much may not count where one is killed.
    package static let runningNoteInterval: Duration = .seconds(3600)
    /// The user's pairs in the advertisement, keys and values together, in bytes.
    package static let discoveryInfoBytes = 400
    /// One pair of the advertisement, `key=value`, in bytes (RFC 6763 section 6.1).
    package static let discoveryPairBytes = 255
    /// Pairs that are read of a peer's advertisement, its own apart; what more it has is passed over.
    package static let discoveryPairs = 64

    // Invitations
    /// Strangers' invitations that wait for a person here, one a peer; where all places are taken, see `StrangersPlaces`. What a trusted
    /// peer asks is not counted.
    package static let pendingInvitations = 32
    /// Of these, from one IPv4 address or IPv6 /64.
    package static let pendingInvitationsPerAddress = 4
    /// How long an inviter may be away before its invitation is taken for withdrawn: a connection that breaks is back within 10 s.
    package static let absentInviterTime: Duration = .seconds(30)
    /// How many invitations, and how many requests to compare digits, a peer may make at once, and the time between two after that: a script
    /// that tries again and again every second is not harmed. Trusted peers' invitations are not counted.
    package static let askingBurst = 8
    /// The most that a program may set for it.
    package static let askingBurstLimit = 10_000
    package static let askingInterval: Duration = .seconds(1)
    /// The same for all strangers at one IPv4 address or IPv6 /64: several machines may be behind one.
    package static let askingBurstPerAddress = 32
    package static let askingIntervalPerAddress: Duration = .milliseconds(250)
    /// Peers, and addresses, of which it is remembered how often they have asked.
    package static let rememberedAskers = 1024
    /// Decided invitations kept for `GET /v1/invitations?state=all`.
    package static let decidedInvitations = 256
    /// What a blocked peer waits for its `declined`, in milliseconds: as a person's rejection takes.
    package static let blockedAnswerMilliseconds: ClosedRange<Int64> = 500...3000
    /// How long the connection of a peer that a person blocks stays open: longer than any answer takes that the peer is owed.
    package static let blockedConnectionTime: Duration = .seconds(5)
    /// The longest timeout of an invitation: a day.
    package static let invitationTimeout: Duration = .seconds(86_400)

    // Trust
    /// How long a person's request for a comparison of digits waits for the peer's person, unless they say: time to walk over.
    package static let comparisonTime: Duration = .seconds(120)
    /// The longest that it may wait.
    package static let comparisonTimeLimit: Duration = .seconds(3600)
    /// How long a peer that has asked may take to reveal, once it was answered: no person is waited for there.
    package static let comparisonStepTime: Duration = .seconds(10)
    /// How long digits are shown.
    package static let comparisonShownTime: Duration = .seconds(600)
    /// The pause after an attempt, before the next with the same peer: each is one try at a million for a man in the middle.
    package static let comparisonPause: Duration = .seconds(30)
    /// Attempts with all peers together in `comparisonPeriod`.
    package static let comparisonsPerPeriod = 6
    package static let comparisonPeriod: Duration = .seconds(60)
    /// Strangers whose requests wait for a person here; where all places are taken, see `StrangersPlaces`.
    package static let comparisonRequests = 32
    /// Of these, from one IPv4 address or IPv6 /64.
    package static let comparisonRequestsPerAddress = 4
    /// The longest time for which trust may be given: ten years.
    package static let trustTime: Duration = .seconds(3650 * 86_400)
    /// How often trust that ends by itself is looked at, at the least.
    package static let trustCheck: Duration = .seconds(600)

    // Messages
    /// How long a message is retried where the sender names no time.
    package static let messageTimeout: Duration = .seconds(10)
    /// The longest time a message may be retried without being queued: a day.
    package static let messageTimeoutLimit: Duration = .seconds(86_400)
    /// Bytes of messages that are on their way to one peer, or read from the outbox for it; more wait for its answers.
    package static let queuedMessageBytes = 4 * 1024 * 1024
    /// What a message costs beyond its body, for the bounds on bytes: about what its row and indices take, so that empty ones are not free.
    package static let messageOverhead = 256
    /// Messages committed to the inbox in one transaction, and their bytes, from which on it takes no more: the next sender's wait for it, and
    /// for the one before.
    package static let deliveryBatch = 2048
    package static let deliveryBatchBytes = 2 * 1024 * 1024
    /// How many have to wait for their transaction to be asked for while that of others is under way. Fewer wait for its end, and for those that
    /// come until then: each transaction takes the disk's time to sync.
    package static let deliveriesToFollow = 256
    /// Conversations of which it is remembered that a message was refused, until their senders know; the oldest give way. More than
    /// talk at once.
    package static let refusedConversations = 10_000
    /// Decisions that are committed in one transaction, where they were made one after another.
    package static let transactionsAtOnce = 256
    /// Messages that one call marks read, in one transaction: as many as one call lists.
    package static let messagesMarkedAtOnce = 1000
    /// Messages of the inbox in one answer, and bytes of their bodies, unless a single one has more: an answer is held in memory whole.
    package static let messagesListed = 1000
    package static let messagePageBytes = 8 * 1024 * 1024
    /// Outgoing messages whose statuses can still be asked for.
    package static let outgoingHistory = 1024
    /// Bytes of their bodies.
    package static let outgoingHistoryBytes = 8 * 1024 * 1024
    /// Recipients of one message that are named; "all" may be more.
    package static let recipients = 256
    /// Messages that wait in the outbox on disk.
    package static let outboxMessages = 10_000
    /// Bytes of them, each with `messageOverhead`.
    package static let outboxBytes = 256 * 1024 * 1024
    /// The longest time for which a message may wait in the outbox: what receivers remember messages for is a little longer.
    package static let outboxAgeLimit: Duration = .seconds(90 * 86_400)
    /// Pauses before a queued message that its receiver had no room for is tried again, the last one from then on.
    package static let refusedDelays: [Duration] = [.seconds(1), .seconds(2), .seconds(5), .seconds(15), .seconds(60)]
    /// How often, at the most, a refused message is tried again because its receiver has read another.
    package static let resumeInterval: Duration = .seconds(1)
    /// How long a deadline of a message may be slept through: timers stand still while the machine is suspended, so that it is looked at in
    /// between. A caller waits for the near ones; the others wait on disk.
    package static func look(at deadline: MonotonicInstant, from now: MonotonicInstant) -> Duration {
        let left = deadline - now
        return max(.zero, min(left, left < .seconds(60) ? .seconds(1) : .seconds(30)))
    }
    /// How often a trusted peer without a session is invited for what is queued for it, while it is seen.
    package static let queueInvitationInterval: Duration = .seconds(60)
    /// Bodies of messages up to this many bytes are copied on their way out: a write of their own costs more.
    package static let copiedBody = 4096
    /// Bytes of unreliable messages that may be on their way to one peer's socket; what comes beyond is dropped.
    package static let unreliableBytes = 2 * 1024 * 1024
    /// Read messages of which their senders are still to take note; the oldest give way.
    package static let pendingReceipts = 10_000
    /// How long notes of receipts gather before they cost a commit.
    package static let noteDelay: Duration = .seconds(1)

    // Resources
    /// What a receiver lets a sender be ahead of its disk, in bytes.
    package static let resourceWindow: UInt64 = 4 * 1024 * 1024
    /// The same while several transfers come from one peer.
    package static let sharedResourceWindow: UInt64 = 512 * 1024
    /// Transfers from one peer that move, or wait for a person's word here.
    package static let incomingTransfers = 8
    /// Movers of transfers from one peer that have not stopped, those that clean up after their end included: as many as the protocol lets be
    /// open. One more offer is answered `busy`.
    package static let incomingMovers = 64
    /// What a peer may offer or open in vain (it takes it back, or it cannot be taken) before more of it is answered `busy`, and the time in
    /// which one of these is forgotten: far more than a person's programs cancel, and few beside the rows and events of others.
    package static let vainOffers = 256
    package static let vainOfferTime: Duration = .milliseconds(250)
    /// Transfers to one peer that move: no more than its node takes. Further ones wait for their turn.
    package static let outgoingTransfers = 8
    /// Outgoing transfers that wait, move or are interrupted, beyond which nothing is queued.
    package static let queuedResources = 1000
    /// How long an interrupted transfer waits for the other side, and what has arrived of it is kept: a day, so that a machine that is
    /// switched off over night goes on in the morning.
    package static let resourceResumeTime: Duration = .seconds(86_400)
    /// What moves for longer than this is recorded as moving, so that it is known for interrupted after a crash.
    package static let resourceRecordTime: Duration = .seconds(1)
    /// Offers from one peer that wait for a person here; one more is answered `busy`.
    package static let waitingOffers = 32
    /// How long an offer waits for a person here.
    package static let offerTime: Duration = .seconds(600)
    /// How long a resource waits for its peer to be within reach, before it is offered.
    package static let resourceReachTime: Duration = .seconds(60)
    /// How long an offer waits for the other side's answer: longer than a person has there, so that its word comes first.
    package static let resourceAnswerTime: Duration = .seconds(660)
    /// How long a transfer under way may stand still: a sender that offers and never sends must not keep its slot and its space. Looked at
    /// once in this time, so that it is noticed after one to two of them.
    package static let resourceStallTime: Duration = .seconds(120)
    /// How long a sender that has sent everything waits for the receiver to have it checked and on disk, and the bytes a second that a
    /// slow disk adds to it.
    package static let resourceDoneTime: Duration = .seconds(600)
    package static let resourceDoneRate: UInt64 = 4 * 1024 * 1024
    /// Received resources that may lie in the spool: empty ones cost little of the quota, but are not free.
    package static let spooledResources = 10_000
    /// What the unfinished transfers of one peer may hold together, in quarters of the quota: with one, three others still find room, and
    /// a peer that offers and never sends keeps no other out.
    package static let peerQuarters: UInt64 = 1
    /// The same of a trusted peer, which a person has chosen: a quarter is left for all others.
    package static let trustedPeerQuarters: UInt64 = 3
    /// The longest list of entries of a directory, in bytes, with which the next directory of that peer may begin before this one ends:
    /// some ten thousand entries. With one list of 32 MiB, and seven of these, a peer's lists take less than 64 MiB of memory.
    package static let shortTreeList = 512 * 1024
    /// How long it is remembered that something half made may lie in a directory that cannot be found: a disk that is not mounted.
    package static let partNoteAge: Duration = .seconds(30 * 86_400)
    /// Time between two progress events of one transfer.
    package static let progressInterval: Duration = .milliseconds(250)
    /// Finished transfers without content that stay listed.
    package static let finishedTransfers = 500
    /// Ends of one peer's transfers that are remembered after their rows went; the oldest give way. More than its node has under way.
    package static let rememberedTransfers = 4096

    // Events
    /// Events kept for readers that are behind, and what they may weigh in bytes.
    package static let eventBacklog = 8192
    package static let eventBacklogBytes = 8 * 1024 * 1024
}
