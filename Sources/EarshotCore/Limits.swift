import EarshotWire

/// The implementation's constants, each with its unit and its reason. The protocol's constants are in EarshotWire.
package enum EarshotLimits {
    // Connections
    /// The time from the first byte to a proven key.
    package static let handshakeTime: Duration = .seconds(10)
    /// The number of unproven connections at a time. The oldest is evicted, so that idle ones cannot keep others out.
    package static let unprovenConnections = 32
    /// The number of unproven connections from one IPv4 address or IPv6 /64. The oldest of them is evicted.
    package static let unprovenConnectionsPerAddress = 4
    /// The time for which a connection that this side closes stays open, so that written data is sent and the other side closes too.
    package static let closingTime: Duration = .seconds(1)
    /// The bytes that are read and dropped on a connection after its last frame: data in flight. If a peer keeps sending until it closes,
    /// the loop must not read for it at the cost of all others.
    package static let closingRead = 512 * 1024
    /// The number of strangers that are remembered to have used TLS while the daemon runs. The oldest is evicted.
    package static let rememberedTLSStrangers = 4096
    /// The silence after which a connection is asked for a sign of life.
    package static let pingAfter: Duration = .seconds(10)
    /// The silence after which the peer is considered dead: within 30 s, which callers rely on, with a margin for the timer.
    package static let deadAfter: Duration = .seconds(25)
    /// The timeout of a TCP connect. On a LAN an answer takes milliseconds; a lost first SYN is repeated after one second.
    package static let connectTime: Duration = .seconds(3)
    /// The time in which a peer has to answer a ping that a user asked for.
    package static let pingTime: Duration = .seconds(5)
    /// The pause in accepting when the process has run out of descriptors. The backlog of a flood is processed in batches of the available
    /// descriptors, with a pause after each batch. This must not take long when the flood is over.
    package static let acceptBackOff: Duration = .milliseconds(100)
    /// The time until the warning is repeated.
    package static let acceptWarning: Duration = .seconds(60)
    /// The time for which an unneeded proven connection is kept.
    package static let idleConnectionTime: Duration = .seconds(60)
    /// The number of unneeded proven connections (new keys cost a stranger nothing). The oldest is evicted.
    package static let idleConnections = 128
    /// The pauses between attempts to reach a peer again: short enough to reconnect within 10 s of the path's return. For a configured
    /// peer, the pause is shorter by up to half, depending on this machine's id.
    package static let redialDelays: [Duration] = [.zero, .seconds(1), .seconds(2), .seconds(4), .seconds(5)]
    /// The pause before a change of a peer or of a queued message that the disk has refused is written again.
    package static let keepPause: Duration = .seconds(5)
    /// The interval at which a configured peer that is connected or blocked is checked. A lost connection is noticed at once anyway.
    package static let configuredCheck: Duration = .seconds(5)
    /// The number of addresses of a configured host that are tried, the resolver's first ones.
    package static let addressesPerHost = 8
    /// The number of sessions with untrusted peers up to which the settings may accept more (`from_unknown = accept`). Above it, a user is
    /// asked: keys cost a stranger nothing, and a session is stored permanently.
    package static let strangersSessions = 256
    /// The number of sightings kept per peer, the latest ones. Anyone may advertise under a peer's id, as often as they like. A machine is
    /// seen once for each interface and protocol that it shares with this one.
    package static let sightingsPerPeer = 16
    /// The number of displaced sightings per peer, which come back when others are lost: as many as one discovery backend reports in all.
    package static let displacedSightings = 4096
    /// The number of seen addresses kept per peer.
    package static let addressesPerPeer = 32
    /// The number of these that one attempt tries, each for up to `connectTime`. The next attempt continues after them.
    package static let addressesPerDial = 8
    /// The delay with which the side with the higher peer id dials a lost peer, so that both seldom dial at once.
    package static let higherPeerDialDelay: Duration = .milliseconds(500)
    /// The time for which the side whose connection was superseded leaves dialling to the superseding peer.
    package static let supersededDialDelay: Duration = .seconds(2)
    /// The time within which two connections, one dialled by each side, count as dialled at once.
    package static let simultaneousDialTime: Duration = .seconds(5)
    /// The bytes that a peer with a session may make this machine hold before its connection is no longer read. They count its frames until
    /// they are handled, and the work that they cause until it is done.
    package static let unprocessedBytes = 4 * 1024 * 1024
    /// The same limit for a peer without a session: its requests are short.
    package static let strangersUnprocessedBytes = 128 * 1024
    /// The bytes held for all peers together above which each may hold only `crowdedUnprocessedBytes`. A flood of short messages takes
    /// three times as much in the end (the events' backlog, the store's cache, the connections' buffers). With 24 MiB here, twelve members
    /// cost 66 MiB, and a flood may cost 64.
    package static let allUnprocessedBytes = 12 * 1024 * 1024
    /// The limit per peer in that case, and the size of a partial frame that a connection without a session may have sent then.
    package static let crowdedUnprocessedBytes = 64 * 1024
    /// The bytes held together after which free pages of the heap are returned when the amount is small again. The gaps that a flood leaves
    /// in the heap would otherwise count as the daemon's memory permanently.
    package static let muchUnprocessedBytes = 1024 * 1024
    /// The number of incoming connections after which free pages are returned too: handshakes fragment the heap.
    package static let manyUnprovenConnections = 128
    /// The delay before that, so that consecutive floods cost it once.
    package static let heapTrimDelay: Duration = .seconds(1)
    /// The bytes that may wait on one connection to be decoded: the largest frame, one read, and the kernel's buffer when the peer ended
    /// the connection.
    package static let undecodedBytes = 2 * 1024 * 1024
    /// The bytes that are read at once from a control connection whose peer has a session. The buffer stays with the connection until it is
    /// closed, and a flood causes a hundred closing connections.
    package static let messagesRead = 64 * 1024
    /// The work of one connection that the node takes at once, in units of `Frame.work`, a few microseconds each. Connections
    /// take turns, and a hundred flooding ones must not delay another peer's message noticeably.
    package static let turnWork = 1024
    /// The same limit for a peer without a session.
    package static let strangersTurnWork = 128
    /// The longest duration of a turn, estimated from the last ones. If a unit of work takes longer than those few microseconds, a turn has
    /// fewer units.
    package static let turnTime: Duration = .milliseconds(2)
    /// The minimum of units in a turn: the size of an ordinary frame, so that each turn makes progress.
    package static let shortestTurnWork = 16
    /// The number of turns of one connection that the node may hold. The node decodes on its own loop. A second turn would not be handled
    /// sooner, and would delay others.
    package static let turnsAhead = 1
    /// The number of unreliable messages that count as one unit of work: they change nothing, and come by the hundred.
    package static let unreliableMessagesPerWork = 4
    /// The bytes charged to a peer for each change of the store that it causes, until the change is on disk: about the size of a row and
    /// its consequences. A peer without a session therefore has 128 of them at a time, and a member 4,096.
    package static let storeWorkCharge = 1024
    /// The bytes charged for each job and each timer that a peer causes, until it is done or due. The charge is small compared to
    /// `crowdedUnprocessedBytes`, since some of them last for minutes (a stream that waits for a reader, an offer that waits for a user).
    package static let waitCharge = 256
    /// The bytes charged to a blocked peer for each invitation until it is declined: 32 at a time.
    package static let blockedAnswerCharge = 4096
    /// The time for which the node handles inputs before it gives its callers a turn.
    package static let nodeTurn: Duration = .milliseconds(1)
    /// The bytes of unwritten answers on one connection above which it is no longer read, with a share for each write: a peer that sends
    /// requests and never reads must not fill the memory.
    package static let unwrittenBytes = 4 * 1024 * 1024
    /// The bytes of unwritten answers on all connections above which each is read only below `crowdedUnwrittenBytes`: a hundred such peers
    /// must not fill the memory either.
    package static let allUnwrittenBytes = 8 * 1024 * 1024
    package static let crowdedUnwrittenBytes = 32 * 1024
    /// The same limit for a peer that shares a session or a group: if two peers send each other much, neither must wait for the other to
    /// read.
    package static let crowdedMemberUnwrittenBytes = 512 * 1024
    /// The bytes that this side may have pending on one connection on its own account while the socket accepts nothing for `unreadTime`:
    /// the messages in flight of four conversations, or those of one conversation that were discarded one after the other.
    package static let unreadBytes = 4 * queuedMessageBytes
    package static let unreadTime: Duration = .seconds(120)
    /// The same limit while the socket sometimes accepts data, if more than `unreadBytes` have been pending for `deadAfter`: a peer could
    /// keep the connection by reading a little. Many groups with one peer have as much pending at once.
    package static let mostUnreadBytes = 16 * queuedMessageBytes

    // Certificates
    /// The number of certificates that a peer may present. TLS keeps them as long as the connection lasts, in several times their size.
    package static let shownCertificates = 16
    /// The size of these certificates together, in bytes of DER. A certificate has one to two thousand, and one with an RSA key of 8192
    /// bits three thousand.
    package static let chainBytes = 16 * 1024
    /// The bytes that may come in before the TLS handshake is complete: the certificates and everything else.
    package static let handshakeBytes = chainBytes + 8 * 1024
    /// The time that a step of a TLS handshake may take on its event loop before a pause follows: ordinary steps take half of it.
    package static let handshakeTurn: Duration = .milliseconds(5)
    /// The pause of the loop's handshakes after a longer step, in multiples of its time: strangers get a fifth of the loop.
    package static let handshakePause = 4
    /// The number of certificates in a chain that is verified, from the peer's own up to but without the authority's: real chains have one
    /// to three.
    package static let chainCertificates = 4
    /// The number of signatures that are checked for one chain: one per certificate, and as many again for authorities with the same name.
    package static let chainSignatures = 8
    /// The number of chains that wait to be verified. `unprovenConnections` of them belong to incoming connections. The others belong to
    /// peers that this machine dials, a thousand at once after a start.
    package static let waitingChains = 1024

    // Data connections
    /// The number of remaining bytes above which a resource uses a data connection: for fewer bytes, the cost exceeds the benefit.
    package static let dataThreshold: UInt64 = 4 * 1024 * 1024
    /// The bytes that may wait between a data connection and its reader, and between its writer and the kernel.
    package static let dataInFlight = 1024 * 1024
    /// The bytes that are read and decrypted at once from a data connection. They stay in a core's cache until they are hashed and written,
    /// and the few buffers are small compared to the rest of a daemon.
    package static let dataRead = 256 * 1024
    /// The time for which the side that has sent everything over a data connection waits for the other side to close it.
    package static let dataEndTime: Duration = .seconds(5)
    /// The time for which a transfer waits for the other side to dial, or to ask to be dialled.
    package static let dataDialTime: Duration = .seconds(15)
    /// The number of dials for data to one peer at a time: more dials would evict each other there (`unprovenConnectionsPerAddress`). If
    /// none is answered, the last of many do not get their turn within `dataDialTime`, and continue without a data connection.
    package static let dataDials = 2
    /// The number of consecutive data connections that are lost without a byte before a transfer continues over the control connection.
    package static let dataFailures = 3
    /// The silence after which the kernel probes the other end of a data connection (keep-alive, RFC 1122 section 4.2.3.6). Without probes,
    /// a receiver would not learn that its path is dead. There is no limit on unacknowledged bytes: it would also end a connection whose
    /// reader only pauses (tcp(7), `TCP_USER_TIMEOUT`).
    package static let dataProbeAfter: Duration = .seconds(5)
    /// The interval between two probes.
    package static let dataProbeInterval: Duration = .seconds(3)
    /// The number of unanswered probes after which the connection is lost: 14 s of silence in all, well within `resourceStallTime`.
    package static let dataProbes = 3
    /// The bytes that the kernel is given to send at once, in one frame.
    package static let dataExtent: UInt64 = 1024 * 1024
    /// The bytes that are read, hashed and written at once: they stay in a core's cache.
    package static let dataBlock = 256 * 1024
    /// The bytes that are read ahead at once from a plaintext data connection (`ReadAhead`): each block costs two threads a wake-up.
    package static let readAheadBlock = 1024 * 1024
    /// The bytes that must have come before the kernel wakes the thread that waits for a plaintext data connection (`SO_RCVLOWAT`,
    /// socket(7)). Otherwise the kernel wakes it for every segment, and acknowledges as often.
    package static let dataWake = 256 * 1024

    // Discovery
    /// The number of listed peers that are known from discovery alone. Peers with other state, and connected peers, do not count.
    package static let discoveredPeers = 2048
    /// The number of ids in an error that are only advertised and begin with the given name, if no other peer has that name.
    package static let advertisedIDsNamed = 4
    /// The number of remembered sightings of this node's own peer id at other machines.
    package static let identityCopies = 16
    /// The time for which a peer stays listed after its last advertisement was lost.
    package static let lossGrace: Duration = .seconds(15)
    /// The time for which the thread of the store, and that of the spool, may be busy with one operation before a watchdog considers it
    /// stuck. The longest ones are a commit behind other writers, and hashing and writing a file of many gigabytes to a slow disk.
    package static let storePatience: Duration = .seconds(120)
    package static let spoolPatience: Duration = .seconds(900)
    /// The same limit for discovery's threads: a D-Bus call to a hanging daemon takes 25 s, and a few calls may follow each other.
    package static let discoveryPatience: Duration = .seconds(120)
    /// The time from the start to the first pruning of the inbox by age, and the interval after that.
    package static let firstPruning: Duration = .seconds(60)
    package static let pruningInterval: Duration = .seconds(3600)
    /// The interval at which the running time of daemons is written. If a daemon is killed, this much may not count.
    package static let runningNoteInterval: Duration = .seconds(3600)
    /// The size of the user's pairs in the advertisement, keys and values together, in bytes.
    package static let discoveryInfoBytes = 400
    /// The size of one pair of the advertisement, `key=value`, in bytes (RFC 6763 section 6.1).
    package static let discoveryPairBytes = 255
    /// The number of pairs that are read from a peer's advertisement, without Earshot's own. Further pairs are ignored.
    package static let discoveryPairs = 64

    // Invitations
    /// The number of strangers' invitations that wait for a user here, one per peer. If all places are taken, see `StrangersPlaces`.
    /// Trusted peers' invitations are not counted.
    package static let pendingInvitations = 32
    /// The number of these from one IPv4 address or IPv6 /64.
    package static let pendingInvitationsPerAddress = 4
    /// The time for which an inviter may be away before its invitation counts as withdrawn: a lost connection is back within 10 s.
    package static let absentInviterTime: Duration = .seconds(30)
    /// The number of invitations, and of requests to compare digits, that a peer may send at once; `askingInterval` is the time between two
    /// after that. A script that retries every second is not affected. Trusted peers' invitations are not counted.
    package static let askingBurst = 8
    /// The highest burst that a program may set.
    package static let askingBurstLimit = 10_000
    package static let askingInterval: Duration = .seconds(1)
    /// The same limit for all strangers at one IPv4 address or IPv6 /64: several machines may share one.
    package static let askingBurstPerAddress = 32
    package static let askingIntervalPerAddress: Duration = .milliseconds(250)
    /// The number of peers, and of addresses, whose rate of requests is remembered.
    package static let rememberedAskers = 1024
    /// The number of decided invitations kept for `GET /v1/invitations?state=all`.
    package static let decidedInvitations = 256
    /// The delay before a blocked peer gets its `declined`, in milliseconds: as long as a user takes to decline.
    package static let blockedAnswerMilliseconds: ClosedRange<Int64> = 500...3000
    /// The time for which the connection of a newly blocked peer stays open: longer than any answer takes that the peer still has to get.
    package static let blockedConnectionTime: Duration = .seconds(5)
    /// The longest timeout of an invitation: a day.
    package static let invitationTimeout: Duration = .seconds(86_400)

    // Trust
    /// The default time for which a user's request to compare digits waits for the peer's user: enough to walk over.
    package static let comparisonTime: Duration = .seconds(120)
    /// The time in which a peer that has asked has to reveal its nonce after the answer: no user is involved there.
    package static let comparisonStepTime: Duration = .seconds(10)
    /// The time for which digits are shown.
    package static let comparisonShownTime: Duration = .seconds(600)
    /// The pause before another attempt with the same peer: each attempt gives a man in the middle one chance in a million.
    package static let comparisonPause: Duration = .seconds(30)
    /// The number of attempts with all peers together in `comparisonPeriod`.
    package static let comparisonsPerPeriod = 6
    package static let comparisonPeriod: Duration = .seconds(60)
    /// The number of strangers whose requests wait for a user here. If all places are taken, see `StrangersPlaces`.
    package static let comparisonRequests = 32
    /// The number of these from one IPv4 address or IPv6 /64.
    package static let comparisonRequestsPerAddress = 4
    /// The longest time for which trust may be given: ten years.
    package static let trustTime: Duration = .seconds(3650 * 86_400)
    /// The longest interval between two checks of trust that expires.
    package static let trustCheck: Duration = .seconds(600)

    // Messages
    /// The time for which a message is retried if the sender gives none.
    package static let messageTimeout: Duration = .seconds(10)
    /// The bytes of messages in flight to one peer, or loaded from the outbox for it. Further messages wait for its answers.
    package static let queuedMessageBytes = 4 * 1024 * 1024
    /// The bytes that a message counts beyond its body, for the limits on bytes: about the size of its row and indices, so that empty
    /// messages are not free.
    package static let messageOverhead = 256
    /// The number of messages, and of their bytes, at which a transaction of the inbox is full: the next sender waits for this transaction
    /// and the one before.
    package static let deliveryBatch = 2048
    package static let deliveryBatchBytes = 2 * 1024 * 1024
    /// The number of waiting messages at which their transaction is requested while another one is under way. Fewer messages wait for its
    /// end, together with those that come until then: each transaction takes the disk's time to sync.
    package static let deliveriesToFollow = 256
    /// The number of conversations of which it is remembered that a message was refused, until their senders know. The oldest are evicted.
    /// The number exceeds that of concurrent conversations.
    package static let refusedConversations = 10_000
    /// The number of consecutive decisions that are committed in one transaction.
    package static let transactionsAtOnce = 256
    /// The number of messages that one call marks as read, in one transaction: as many as one call lists.
    package static let messagesMarkedAtOnce = 1000
    /// The number of messages in one answer, and the bytes of their bodies, unless a single one has more: an answer is held in memory as a
    /// whole.
    package static let messagesListed = 1000
    package static let messagePageBytes = 8 * 1024 * 1024
    /// The number of outgoing messages whose statuses can still be queried.
    package static let outgoingHistory = 1024
    /// The bytes of their bodies.
    package static let outgoingHistoryBytes = 8 * 1024 * 1024
    /// The number of named recipients of one message; "all" may be more.
    package static let recipients = 256
    /// The number of messages that wait in the outbox on disk.
    package static let outboxMessages = 10_000
    /// The bytes of these messages, each with `messageOverhead`.
    package static let outboxBytes = 256 * 1024 * 1024
    /// The longest time for which a message may wait in the outbox. Receivers remember messages a little longer.
    package static let outboxAgeLimit: Duration = .seconds(90 * 86_400)
    /// The pauses before a queued message that its receiver had no room for is retried. The last one repeats.
    package static let refusedDelays: [Duration] = [.seconds(1), .seconds(2), .seconds(5), .seconds(15), .seconds(60)]
    /// The shortest interval between retries of a refused message after its receiver has read another one.
    package static let resumeInterval: Duration = .seconds(1)
    /// Returns the time until a message's deadline is checked next. Timers stand still while the machine is suspended, so that deadlines
    /// are checked at intervals. Callers wait for the near ones; the others wait on disk.
    package static func look(at deadline: MonotonicInstant, from now: MonotonicInstant) -> Duration {
        let left = deadline - now
        return max(.zero, min(left, left < .seconds(60) ? .seconds(1) : .seconds(30)))
    }
    /// The interval at which a trusted peer without a session is invited for messages queued for it, while it is seen.
    package static let queueInvitationInterval: Duration = .seconds(60)
    /// The size up to which a message's body is copied for sending, in bytes: a separate write costs more.
    package static let copiedBody = 4096
    /// The bytes of unreliable messages that may be in flight to one peer's socket. Further messages are dropped.
    package static let unreliableBytes = 2 * 1024 * 1024
    /// The number of read messages that their senders have not noted yet. The oldest are evicted.
    package static let pendingReceipts = 10_000
    /// The time for which notes of receipts are gathered before they are committed.
    package static let noteDelay: Duration = .seconds(1)

    // Resources
    /// The bytes by which a sender may be ahead of the receiver's disk.
    package static let resourceWindow: UInt64 = 4 * 1024 * 1024
    /// The same limit while several transfers come from one peer.
    package static let sharedResourceWindow: UInt64 = 512 * 1024
    /// The number of transfers from one peer that move, or wait for a user here.
    package static let incomingTransfers = 8
    /// The number of running movers of transfers from one peer, including those that clean up after their end: as many as the protocol
    /// allows to be open. Another offer is answered `busy`.
    package static let incomingMovers = 64
    /// The number of offers and streams of a peer that may come to nothing (it withdraws them, or they cannot be accepted) before further
    /// ones are answered `busy`, and the time in which one of these is forgotten. The number is far above what users' programs cancel, and
    /// small compared to the rows and events of others.
    package static let vainOffers = 256
    package static let vainOfferTime: Duration = .milliseconds(250)
    /// The number of moving transfers to one peer: no more than its node accepts. Further transfers wait for their turn.
    package static let outgoingTransfers = 8
    /// The number of outgoing transfers that wait, move or are interrupted, above which nothing is queued.
    package static let queuedResources = 1000
    /// The time for which an interrupted transfer waits for the other side, and its partial content is kept: a day, so that a machine that
    /// is off overnight continues in the morning.
    package static let resourceResumeTime: Duration = .seconds(86_400)
    /// The time after which a moving transfer is recorded as moving, so that it counts as interrupted after a crash.
    package static let resourceRecordTime: Duration = .seconds(1)
    /// The number of offers from one peer that wait for a user here. Another one is answered `busy`.
    package static let waitingOffers = 32
    /// The time for which an offer waits for a user here.
    package static let offerTime: Duration = .seconds(600)
    /// The time for which a resource waits for its peer to be within reach before it is offered.
    package static let resourceReachTime: Duration = .seconds(60)
    /// The time for which an offer waits for the other side's answer: longer than the user there has, so that the other side's timeout
    /// comes first.
    package static let resourceAnswerTime: Duration = .seconds(660)
    /// The time for which a transfer may stall: a sender that offers and never sends must not keep its slot and its space. Checked once in
    /// this time, so that a stall is noticed after one to two of them.
    package static let resourceStallTime: Duration = .seconds(120)
    /// The time for which a sender that has sent everything waits until the receiver has verified and stored the content, and the bytes per
    /// second by which a slow disk extends it.
    package static let resourceDoneTime: Duration = .seconds(600)
    package static let resourceDoneRate: UInt64 = 4 * 1024 * 1024
    /// The number of received resources in the spool: empty ones cost little of the quota, but are not free.
    package static let spooledResources = 10_000
    /// The share of unfinished transfers of one peer, in quarters of the quota. With one quarter, three other peers still find room, and a
    /// peer that offers and never sends keeps no other out.
    package static let peerQuarters: UInt64 = 1
    /// The same share for a trusted peer, which a user has chosen: a quarter remains for all others.
    package static let trustedPeerQuarters: UInt64 = 3
    /// The longest list of a directory's entries, in bytes, with which the next directory of that peer may begin before this one ends: some
    /// ten thousand entries. With one list of 32 MiB and seven of these, a peer's lists take less than 64 MiB of memory.
    package static let shortTreeList = 512 * 1024
    /// The time for which a possible partial file is remembered in a directory that cannot be found: a disk that is not mounted.
    package static let partNoteAge: Duration = .seconds(30 * 86_400)
    /// The time between two progress events of one transfer.
    package static let progressInterval: Duration = .milliseconds(250)
    /// The number of finished transfers without content that stay listed.
    package static let finishedTransfers = 500
    /// The number of ended transfers of one peer that are remembered after their rows were removed. The oldest are evicted. The number
    /// exceeds that of transfers under way at its node.
    package static let rememberedTransfers = 4096

    // Events
    /// The number of events kept for slow readers, and their size in bytes.
    package static let eventBacklog = 8192
    package static let eventBacklogBytes = 8 * 1024 * 1024
}
