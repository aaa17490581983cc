/// The protocol's constants, which every implementation must share.
package enum WireLimits {
    /// The protocol versions that this implementation speaks.
    package static let versions: ClosedRange<UInt8> = 1...1
    /// The bytes that each side sends before its first frame, on either transport. The first byte is not 0x16, so a listener can tell it
    /// from a TLS record.
    package static let preamble: [UInt8] = Array("EARSHOT\n".utf8)
    /// The first byte of a TLS handshake record (RFC 8446 section 5.1).
    package static let tlsHandshakeByte: UInt8 = 0x16
    /// Length (u32) and type (u8) before each payload, in bytes.
    package static let frameHeaderLength = 5
    /// The longest payload of a hello, in bytes.
    package static let helloPayload = 8 * 1024
    /// The longest payload before both sides are proven, of any other frame, in bytes.
    package static let unprovenPayload = 2 * 1024
    /// The longest payload of any frame, in bytes: a full message with its content type and identifiers fits.
    package static let framePayload = 1024 * 1024 + 1024
    /// A hello's nonce, in bytes.
    package static let nonceLength = 32
    /// The longest public key (SubjectPublicKeyInfo, DER), in bytes: RSA 8192 fits.
    package static let publicKey = 2048
    /// The longest signature, in bytes: RSA 8192 fits.
    package static let signature = 1024
    /// A nonce of a comparison of digits, and a commitment to one (SHA-256), in bytes.
    package static let verificationPart = 32
    /// The most extensions in a hello.
    package static let helloExtensions = 16
    /// The longest invitation context, in bytes.
    package static let invitationContext = 8 * 1024
    /// The longest time an inviter may leave an invitation open, in milliseconds: a day.
    package static let invitationTimeoutMilliseconds: UInt32 = 86_400_000
    /// The longest body of a message, in bytes.
    package static let messageBody = 1024 * 1024
    /// The longest time for which a sender may retry a message that is not queued: a day. Not on the wire.
    package static let messageTimeout: Duration = .seconds(86_400)
    /// The longest time for which a user's request to compare digits may wait for the peer's user: an hour. Not on the wire.
    package static let comparisonTime: Duration = .seconds(3600)
    /// The longest content type, in bytes.
    package static let contentType = 255
    /// The range of a message's sending time, in milliseconds since 1970: from 0001-01-01T00:00:00Z to 9999-12-31T23:59:59.999Z. A receiver
    /// clamps a time beyond it.
    package static let sentAtMilliseconds: ClosedRange<Int64> = -62_135_596_800_000...253_402_300_799_999
    /// The most receipts in one frame.
    package static let receiptsPerFrame = 1024
    /// The longest resource name, in bytes of UTF-8. Longer than any file system allows, so that the receiver can name the file that it
    /// refuses.
    package static let resourceName = 1024
    /// A file's attributes after its name, in bytes: flags, seconds, nanoseconds.
    package static let fileAttributes = 1 + 8 + 4
    /// The most bytes of a resource in one chunk.
    package static let chunkData = 256 * 1024
    /// A ticket's token, in bytes.
    package static let dataToken = 32
    /// The lifetime of a ticket, in seconds.
    package static let dataTicketSeconds = 30
    /// The most bytes in one frame of a data connection.
    package static let dataFrame = 4 * 1024 * 1024
    /// The most bytes of a stream in one frame.
    package static let streamData = 256 * 1024
    /// The range of a limit on the bandwidth of transfers, in bytes per second: from 1 KiB/s to 1 TiB/s. Not on the wire.
    package static let transferRate: ClosedRange<UInt64> = 1024...(1 << 40)
    /// The longest digest, in bytes.
    package static let digest = 64
    /// The digest of a resource's beginning, XXH3-128, in bytes.
    package static let prefixDigest = 16
    /// The random part that makes a group's charter unique, in bytes.
    package static let groupNonce = 16
    /// The most members of a group.
    package static let groupMembers: UInt8 = 64
    /// The most groups in one frame, which is also the most groups of a peer.
    package static let groupsPerFrame = 64
    /// The most records of each kind that a side holds of a group.
    package static let groupRecords = 256
    /// The most hashes in one index: seats, leaves, removals, and the terms.
    package static let groupIndex = 3 * groupRecords + 1
    /// The longest explanatory text, in bytes.
    package static let explanation = 512
    /// The largest resource, in bytes: offsets stay representable as file offsets.
    package static let resourceSize: UInt64 = UInt64(Int64.max)
}
