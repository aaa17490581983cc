import NIOCore

/// The constants of LocalSend's transport, each with its unit and its reason. The limits of the node are in `EarshotLimits`.
enum LocalSendLimits {
    /// The usual port, TCP and UDP.
    static let port: UInt16 = 53_317
    /// The version of the protocol that this machine announces.
    static let version = "2.2"
    /// The type of device that this machine announces.
    static let deviceType = "headless"
    /// The model that this machine announces.
    static let deviceModel = "Earshot"

    // Messages
    /// The bytes of a JSON body. 5,000 files with their names and checksums take about 2 MiB.
    static let bodyBytes = 4 * 1024 * 1024
    /// The bytes of all JSON bodies that are being read or decoded. Decoding takes several times as much.
    static let allBodyBytes = 8 * 1024 * 1024
    /// The bytes of a JSON body that do not count there, so that large bodies keep no ordinary one out.
    static let ordinaryBodyBytes = 64 * 1024
    /// The marks of JSON (commas, colons, and opening brackets and braces) in a body. A decoder allocates up to 24 bytes for each byte of a
    /// body that consists of them. 5,000 files have about 110,000.
    static let jsonMarks = 320_000
    /// The bytes of the id of a file or a session, and of a token. All known implementations use UUIDs.
    static let idBytes = 128
    /// The bytes of a device's model, type and version. Longer texts are cut.
    static let descriptionBytes = 63

    // Server
    /// The bytes of a request's line and header fields.
    static let headBytes = 16 * 1024
    /// The number of header fields.
    static let headFields = 100
    /// The time from an accepted connection, or from an answer, to the next complete head. Also the time that an unused connection is kept.
    static let headTime: TimeAmount = .seconds(10)
    /// The time for a whole JSON body.
    static let bodyTime: TimeAmount = .seconds(30)
    /// The time for which an upload, or its token, may be silent.
    static let silentTime: TimeAmount = .seconds(60)
    /// The number of connections at a time. If there are more, the oldest unused one is closed. 32 strangers' offers may wait for a user,
    /// and each holds a connection, so the rest is for trusted devices, registrations and cancellations.
    static let connections = 48
    /// The number of connections from one IPv4 address or IPv6 /64. The app of LocalSend uploads two files at a time.
    static let connectionsPerAddress = 8
    /// The time for which a connection stays open after its last answer, so that the sender can read the answer.
    static let lastAnswerTime: TimeAmount = .seconds(3)
    /// The bytes of an upload that wait for their reader.
    static let waitingBytes = 1024 * 1024
    /// The bytes of one read of an upload's socket.
    static let uploadRead = 256 * 1024
    /// The bytes that are read and dropped after an answer that came before its request's end. With more, the socket is read no further, so
    /// that a sender that ignores the answer is held up.
    static let droppedBytes = 1024 * 1024

    // Client
    /// The time for the TLS handshake.
    static let handshakeTime: TimeAmount = .seconds(10)
    /// The time for the answer to `register` and `cancel`, which need no user.
    static let shortAnswerTime: TimeAmount = .seconds(5)
    /// The bytes of an answer to an offer, with its head: those of an offer itself.
    static let offerAnswerBytes = bodyBytes
    /// The bytes of any other answer, with its head. A description has a few hundred. 30 devices about which nobody has decided may answer
    /// `register` at the same time.
    static let shortAnswerBytes = 64 * 1024
    /// The time for the answer after the last byte of an upload, in which the device brings the file to its disk.
    static let uploadAnswerTime: TimeAmount = .minutes(5)
    /// The bytes of an upload's pieces. Larger ones are split, so that one write neither occupies the loop for long nor doubles the memory.
    static let uploadPiece = 256 * 1024

    // Discovery
    /// The multicast groups.
    static let groupIPv4 = "224.0.0.167"
    static let groupIPv6 = "ff12::fd3a:e420"
    /// The bytes of a datagram. An announcement takes about 300.
    static let datagramBytes = 2 * 1024
    /// The number of datagrams that are decoded in a second, and of those from one address. A device sends three in 2.6 s.
    static let datagramsPerSecond = 100
    static let datagramsPerSecondAndAddress = 10
    /// The pause between a change of the networks and the reaction, because changes come in groups.
    static let linksSettle: TimeAmount = .milliseconds(500)
    /// The pause before the kernel is asked again to report changes.
    static let linksRetry: TimeAmount = .seconds(10)
}
