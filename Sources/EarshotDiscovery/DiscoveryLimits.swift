/// The constants of discovery, with their units and reasons.
enum DiscoveryLimits {
    /// The most bytes of a TXT string, after its length byte (RFC 1035 section 3.3.14). Avahi aborts on more.
    static let txtPairBytes = 255
    /// The most bytes of the whole TXT record, including its length bytes. RFC 6763 section 6.2 wants it in one packet; larger records have
    /// crashed whole daemons.
    static let txtRecordBytes = 1_300
    /// The most pairs kept of a peer's TXT record. A peer may send any number; more than this serves no user.
    static let txtPairs = 64
    /// The longest instance name, in bytes of UTF-8: one DNS label (RFC 6763 section 4.1.1).
    static let instanceNameBytes = 63
    /// The buffer for a multicast DNS packet, in bytes: the largest UDP packet. Avahi itself reads 9,000 bytes (RFC 6762 section 17).
    static let packetBytes = 65_536

    /// The most instances remembered over all interfaces and protocols; more are ignored. About two per peer and link for 2,048 peers.
    static let sightings = 4_096
    /// The most addresses kept of one instance on one interface and protocol.
    static let addresses = 16
    /// The most open resolvers, which report changes of TXT records and addresses. avahi-daemon allows 1,024 objects per client in all, and
    /// each resolver comes with a browser of its host's addresses.
    static let openResolvers = 256
    /// The number of open resolvers that are replaced each second for waiting instances, once every instance has been resolved.
    static let rotatedResolvers = 16
    /// The time that an open resolver may stay silent before it is replaced. Avahi itself times out after 5 s.
    static let resolverPatience: Duration = .seconds(10)
    /// The first pause after a resolver failed. It is doubled each time up to `resolverRetryLimit`.
    static let resolverRetry: Duration = .seconds(2)
    static let resolverRetryLimit: Duration = .seconds(60)
    /// The limit for an instance that was resolved before: when its machine is back, Avahi does not report a name that it still remembers.
    static let heardRetryLimit: Duration = .seconds(5)
    /// The failures in a row after which an instance that was resolved before counts as gone. With Avahi's 5 s each and the pauses between
    /// them, these take 21 s after the two minutes in which its address is remembered.
    static let resolverFailures = 3

    /// The time between a change of a name's TXT record and the resolution of the name from scratch. The name may have passed to another
    /// host, and an open resolver keeps the old host's address. After this time, the old records are out of the caches (RFC 6762 section
    /// 10.2: 1 s).
    static let resolveAnew: Duration = .seconds(2)

    /// The first and all later pauses before a reconnection to the daemon: the service is advertised again within 5 s of the daemon's
    /// return.
    static let firstReconnect: Duration = .seconds(1)
    static let reconnect: Duration = .seconds(2)
    /// The interval at which avahi-daemon is asked for a sign of life, because a daemon that hangs reports nothing. The interval is long
    /// enough for an idle daemon. Together with `callPatience`, it is short enough to detect a silence before `avahiPatience` is over.
    static let pulse: Duration = .seconds(5)
    /// The time after which avahi-daemon counts as not answering a call. libdbus itself would wait for 25 s.
    static let callPatience: Duration = .seconds(2)
    /// The pause after a publication or a browser failed.
    static let retry: Duration = .seconds(2)
    /// The pause after Avahi refused permission. Only the administrator can change that, and a restart of avahi-daemon is detected anyway.
    static let refusedRetry: Duration = .seconds(60)
    /// The time that an entry group may stay in REGISTERING before it is committed again. A group may get stuck when an interface flaps.
    static let registering: Duration = .seconds(10)
    /// The names tried in a row before the first is tried again after `renamesPause`.
    static let renames = 50
    /// The number of renames without a pause, and the pause before each further one (RFC 6762 section 8.1).
    static let quickRenames = 15
    static let renameDelay: Duration = .seconds(5)
    static let renamesPause: Duration = .seconds(60)
    /// The time that the end of discovery waits for Avahi's thread, in seconds. In that time, the thread sends its goodbye on the network.
    static let farewell: UInt32 = 2
    /// The interval at which the embedded responder checks for new and lost addresses.
    static let addressPoll: Duration = .seconds(2)
    /// The most addresses that the embedded responder publishes.
    static let localAddresses = 256

    /// The most events that wait for the reader. Beyond it, the whole view is sent again when there is room.
    static let waitingEvents = 16_384
    /// The interval at which sending a view that did not fit is retried.
    static let resend: Duration = .seconds(1)

    /// The time that `auto` waits for Avahi, from Avahi's last answer, before it starts the embedded responder.
    static let avahiPatience: Duration = .seconds(10)
    /// The time that the embedded responder's sightings stay valid after the return to Avahi. Avahi needs 1 to 2 s to find the same peers.
    static let embeddedMemory: Duration = .seconds(5)
}
