import EarshotWire

/// Limits on LocalSend devices.
extension EarshotLimits {
    // Offers
    /// The number of files in one offer.
    package static let deviceOfferFiles = 5000
    /// The size of a text message that a device sends, in bytes: that of any message.
    package static let devicePreviewBytes = WireLimits.messageBody
    /// The length of a device's name, in bytes of UTF-8. A longer name is cut.
    package static let deviceAliasLength = DisplayName.byteLimit
    /// The length of the id that a sender gives to a file, in bytes.
    package static let deviceFileIDBytes = 256
    /// The names and ids of files in all pending offers together, in bytes. Another offer is answered 409. One offer's JSON has at most 4
    /// MiB, so that two large ones fit.
    package static let pendingDeviceOfferBytes = 8 * 1024 * 1024
    /// The bytes that a file of an offer counts beyond its names, about the size of its records.
    package static let deviceFileOverhead = 128
    /// The number of files that a decided invitation still lists. The decided ones stay listed for a while, and an offer may have thousands
    /// of files.
    package static let decidedOfferFiles = 16
    /// The number of blocked or hidden senders that wait for their refusal. Each holds a connection, which devices that a user trusts may
    /// need. Further ones are refused at once.
    package static let lateDeviceRefusals = 4
    /// The default time for which an offer waits for a user.
    package static let deviceOfferTime: Duration = .seconds(300)
    /// The shortest and the longest time that the settings may set.
    package static let deviceOfferTimes: ClosedRange<Duration> = .seconds(5) ... .seconds(86_400)

    // Sessions
    /// The number of accepted offers of one device that are under way. Another offer is answered 409.
    package static let deviceSessions = 4
    /// The number of these in all.
    package static let allDeviceSessions = 32
    /// The number of files of one session that are received at a time: LocalSend sends two. Another upload is refused.
    package static let deviceUploads = 8
    /// The time without a byte after which the tokens of a session expire.
    package static let deviceTokenTime: Duration = .seconds(60)
    /// The number of uploads of one file: after the last digest mismatch it is failed.
    package static let deviceUploadAttempts = 3

    // Sending
    /// The pauses before something is offered again to a device that was busy or could not be reached. The last one repeats.
    package static let deviceRetryDelays: [Duration] = [.seconds(1), .seconds(2), .seconds(5)]
    /// The default time for which a message to a device is retried: its user has to accept it.
    package static let deviceMessageTimeout: Duration = .seconds(300)

    // PIN
    /// The number of wrong PINs of one IPv4 address or IPv6 /64, and of all together, within `devicePINPeriod`. After that, senders that
    /// are not trusted are answered 429.
    package static let devicePINsPerAddress = 3
    package static let devicePINs = 20
    package static let devicePINPeriod: Duration = .seconds(3600)
    /// The length of a PIN in characters.
    package static let devicePINLength = 6...64

    // Discovery
    /// The number of devices that are listed only because they were seen. Devices that this machine has not reached itself are evicted
    /// first: a certificate costs nothing, and an address on a link does.
    package static let seenDevices = 256
    /// The number of new devices that one address may make known at once by `register`, and the interval between two after that. A machine
    /// has one certificate.
    package static let newDevicesPerAddress = 4
    package static let newDeviceInterval: Duration = .seconds(10)
    /// The ports at which this machine calls devices: the ports below belong to services of the system.
    package static let devicePorts: ClosedRange<UInt16> = 1024 ... .max
    /// The interval between two `register` requests to one address.
    package static let deviceRegisterInterval: Duration = .seconds(10)
    /// The number of `register` requests in `deviceRegisterPeriod`.
    package static let deviceRegisters = 30
    package static let deviceRegisterPeriod: Duration = .seconds(60)
    /// The number of addresses whose last request is remembered.
    package static let rememberedDeviceAddresses = 1024
    /// The silence after which a device is asked for a sign of life, and is lost if it gives none.
    package static let deviceSilence: Duration = .seconds(180)
    /// The pause before that is tried again if too many requests were made.
    package static let deviceSilencePause: Duration = .seconds(30)
    /// The waits before the three datagrams of an announcement, one after the other.
    package static let deviceAnnouncementDelays: [Duration] = [.milliseconds(100), .milliseconds(500), .seconds(2)]
    /// The interval between two announcements on users' requests.
    package static let deviceAnnouncementInterval: Duration = .seconds(10)
    /// The interval of announcements while something is queued for a device.
    package static let deviceQueueAnnouncementInterval: Duration = .seconds(60)
    /// The time for which this machine's networks are remembered, after they were read from the kernel.
    package static let linksAge: Duration = .seconds(1)
    /// The number of datagrams that wait for the node. Further ones are dropped.
    package static let waitingDeviceDatagrams = 64
}
