/// The protocol's constants: a second implementation needs the same ones.
package enum WireLimits {
    /// The protocol versions that this implementation speaks.
    package static let versions: ClosedRange<UInt8> = 1...1
    /// What the initiator and the responder send before their first frame, on either transport. Its first byte is not 0x16,
    /// by which a listener tells it from a TLS record.
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
    /// The longest content type, in bytes.
    package static let contentType = 255
    /// When a message may have been sent, in milliseconds since 1970: from 0001-01-01T00:00:00Z to 9999-12-31T23:59:59.999Z. A receiver
    /// takes a time beyond for the nearest of the two.
    package static let sentAtMilliseconds: ClosedRange<Int64> = -62_135_596_800_000...253_402_300_799_999
    /// The most receipts in one frame.
    package static let receiptsPerFrame = 1024
    /// The longest resource name, in bytes of UTF-8; longer than any file system takes, so that the receiver can say which it refuses.
    package static let resourceName = 1024
    /// A file's attributes behind its name, in bytes: flags, seconds, nanoseconds.
    package static let fileAttributes = 1 + 8 + 4
    /// The most bytes of a resource in one chunk.
    package static let chunkData = 256 * 1024
    /// A ticket's token, in bytes.
    package static let dataToken = 32
    /// How long a ticket is good, in seconds.
    package static let dataTicketSeconds = 30
    /// The most bytes in one frame of a data connection.
    package static let dataFrame = 4 * 1024 * 1024
    /// The most bytes of a stream in one frame.
    package static let streamData = 256 * 1024
    /// The longest digest, in bytes.
    package static let digest = 64
    /// The digest of a resource's beginning, XXH3-128, in bytes.
    package static let prefixDigest = 16
    /// What makes a group's charter its own, in bytes.
    package static let groupNonce = 16
    /// The most members of a group.
    package static let groupMembers: UInt8 = 64
    /// The most groups that one frame names: a peer is in no more.
    package static let groupsPerFrame = 64
    /// The most records of each kind that a side holds of a group.
    package static let groupRecords = 256
    /// The most hashes in one index: seats, leaves, removals, and the terms.
    package static let groupIndex = 3 * groupRecords + 1
    /// The longest explanation in words, in bytes.
    package static let explanation = 512
    /// The largest resource, in bytes: offsets stay representable as a file offset.
    package static let resourceSize: UInt64 = UInt64(Int64.max)
}
