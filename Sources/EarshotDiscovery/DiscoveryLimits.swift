/// The constants of discovery, each with its unit and why.
enum DiscoveryLimits {
    /// A TXT string is one length byte and at most this many bytes (RFC 1035 section 3.3.14); Avahi aborts on more.
    static let txtPairBytes = 255
    /// The whole TXT record in bytes with its length bytes: RFC 6763 section 6.2 wants it in one packet; more once crashed whole daemons.
    static let txtRecordBytes = 1_300
    /// Pairs kept of a peer's TXT record: a peer may send what it likes, we keep what a person could mean.
    static let txtPairs = 64
    /// An instance name in bytes of UTF-8: one DNS label (RFC 6763 section 4.1.1).
    static let instanceNameBytes = 63
    /// A packet of multicast DNS in bytes: as many as one of UDP can have. Avahi itself reads 9,000 of them (RFC 6762 section 17).
    static let packetBytes = 65_536

    /// Instances remembered over all interfaces and protocols; more are ignored. About two a peer and link for 2,048 peers.
    static let sightings = 4_096
    /// Addresses kept of one instance on one interface and protocol.
    static let addresses = 16
    /// Resolvers held open, so that changes of TXT and address are told: avahi-daemon allows 1,024 objects a client in all,
    /// and each resolver has a browser of its host's addresses beside it.
    static let openResolvers = 256
    /// Open resolvers that give way each second to instances that wait for their turn, once every instance has been resolved.
    static let rotatedResolvers = 16
    /// How long an open resolver may stay silent before it gives way: Avahi itself gives up after 5 s.
    static let resolverPatience: Duration = .seconds(10)
    /// The first wait after a resolver failed; doubled each time up to `resolverRetryLimit`.
    static let resolverRetry: Duration = .seconds(2)
    static let resolverRetryLimit: Duration = .seconds(60)
    /// The same of an instance that was resolved before: when its machine is back, Avahi says nothing of a name that it still remembers.
    static let heardRetryLimit: Duration = .seconds(5)
    /// Failures in a row after which an instance that was resolved before counts as gone: with Avahi's 5 s each and the waits between them the
    /// last of 21 s, behind the two minutes after which its address is forgotten.
    static let resolverFailures = 3

    /// How long after a name's TXT record changed it is resolved from scratch: the name may have passed to another host, and an open
    /// resolver goes on with the old host's address. By then the old records are out of the caches (RFC 6762 section 10.2: 1 s).
    static let resolveAnew: Duration = .seconds(2)

    /// The first wait before the daemon is tried again, and all later ones: re-advertised within 5 s of its return.
    static let firstReconnect: Duration = .seconds(1)
    static let reconnect: Duration = .seconds(2)
    /// How often avahi-daemon is asked for a sign of life: one that hangs says nothing by itself. Rarely enough for an idle daemon, and often
    /// enough that with `callPatience` a silence is shown before `avahiPatience` is over.
    static let pulse: Duration = .seconds(5)
    /// How long a call may take until avahi-daemon counts as not answering. libdbus itself would wait for 25 s.
    static let callPatience: Duration = .seconds(2)
    /// The wait after a publication or a browser was refused.
    static let retry: Duration = .seconds(2)
    /// The same where Avahi does not permit it: only a person changes that, and a restart of avahi-daemon is noticed by itself.
    static let refusedRetry: Duration = .seconds(60)
    /// An entry group may stick in REGISTERING when an interface flaps; it is committed anew after this long.
    static let registering: Duration = .seconds(10)
    /// Names tried one after the other before the first one is tried again after `renamesPause`.
    static let renames = 50
    /// Of them, how many follow one another at once, and how long each waits behind them (RFC 6762 section 8.1).
    static let quickRenames = 15
    static let renameDelay: Duration = .seconds(5)
    static let renamesPause: Duration = .seconds(60)
    /// Seconds that the end waits for Avahi's thread, which says goodbye on the network meanwhile.
    static let farewell: UInt32 = 2
    /// How often the embedded responder looks for addresses that came and went.
    static let addressPoll: Duration = .seconds(2)
    /// Addresses that the embedded responder publishes at most.
    static let localAddresses = 256

    /// Events that wait for the reader; past it the view is sent anew from the start, once there is room.
    static let waitingEvents = 16_384
    /// How often a view that did not fit is tried again.
    static let resend: Duration = .seconds(1)

    /// How long `auto` waits for Avahi before it starts the embedded responder, from the last time that it answered.
    static let avahiPatience: Duration = .seconds(10)
    /// How long after the return to Avahi what the embedded responder saw is still believed: Avahi needs 1 to 2 s to see the same.
    static let embeddedMemory: Duration = .seconds(5)
}
