internal import EarshotSafety
package import NIOCore

/// One unit of the protocol on a connection, decoded and within its limits.
///
/// On the wire a frame is a length (u32, of the payload alone), a type (u8) and the payload; integers are in network order. The DocC
/// article "Frames" lists every field. A receiver may ignore unknown types from 0x80 up; an unknown type below 0x80 closes the connection
/// with `protocol-violation`.
package enum Frame: Sendable, Hashable {
    // Handshake
    case hello(Hello)
    case proof(Proof)
    /// The last frame of a connection that is refused, or closed because of a fault.
    case refusal(Refusal)

    // Connection lifetime
    case ping(UInt64)
    case pong(UInt64)
    /// The last frame of a connection that ends in order. Sessions continue.
    case goodbye

    // Invitations and sessions
    case invite(Invite)
    case inviteAnswer(InviteAnswer)
    case inviteWithdraw(InviteWithdraw)
    /// Says that the sender holds this session with the receiver. Both sides send it once a connection is proven.
    case sessionResume(SessionID)
    /// The session does not exist on this side, or no longer does.
    case sessionEnd(SessionID)

    // Groups
    case group(GroupFrame)

    // Messages
    case message(MessageFrame)
    case messageReceipts([MessageReceipt])

    // Transfers and streams
    case resource(ResourceFrame)
    case stream(StreamFrame)

    // Data connections
    /// Asks the receiver to dial the sender and present this token: for one transfer, once, soon.
    case dataTicket(DataTicket)
    /// Says that the sender could not dial the receiver for this transfer.
    case dataUnavailable(TransferID)
    /// The first frame of a data connection, from its initiator: the token of a ticket.
    case dataAttach(DataToken)

    // Comparison of digits by two users
    case verification(VerificationFrame)
}

/// A side's opening frame: its claimed identity and its capabilities. Bound into the transcript byte for byte.
package struct Hello: Sendable, Hashable {
    package var versions: ClosedRange<UInt8>
    /// SubjectPublicKeyInfo, DER.
    package var publicKey: [UInt8]
    package var signatureScheme: SignatureScheme
    /// `WireLimits.nonceLength` random bytes.
    package var nonce: [UInt8]
    package var serviceType: ServiceType
    package var displayName: DisplayName
    package var encryption: EncryptionPreference
    /// Extensions of the protocol. Unknown ones are skipped, but signed like the rest.
    package var extensions: [HelloExtension]

    package init(
        versions: ClosedRange<UInt8>, publicKey: [UInt8], signatureScheme: SignatureScheme, nonce: [UInt8], serviceType: ServiceType,
        displayName: DisplayName, encryption: EncryptionPreference, extensions: [HelloExtension] = []
    ) {
        self.versions = versions
        self.publicKey = publicKey
        self.signatureScheme = signatureScheme
        self.nonce = nonce
        self.serviceType = serviceType
        self.displayName = displayName
        self.encryption = encryption
        self.extensions = extensions
    }
}

/// The signature scheme of a proof, by TLS's numbers (RFC 8446 section 4.2.3).
package struct SignatureScheme: RawRepresentable, Sendable, Hashable {
    package var rawValue: UInt16
    package init(rawValue: UInt16) { self.rawValue = rawValue }
    /// ECDSA on P-256 with SHA-256; the signature is a DER ECDSA-Sig-Value.
    package static let ecdsaSecp256r1SHA256 = SignatureScheme(rawValue: 0x0403)
    /// ECDSA on P-384 with SHA-384; the signature is a DER ECDSA-Sig-Value.
    package static let ecdsaSecp384r1SHA384 = SignatureScheme(rawValue: 0x0503)
    /// RSASSA-PSS with SHA-256, MGF1 with SHA-256 and a salt of 32 bytes, with a key of the kind rsaEncryption.
    package static let rsaPSSSHA256 = SignatureScheme(rawValue: 0x0804)
    /// Ed25519 (RFC 8032 section 5.1); the signature has 64 bytes.
    package static let ed25519 = SignatureScheme(rawValue: 0x0807)
}

/// A signature over `"earshot/1 proof" || role || T`.
package struct Proof: Sendable, Hashable {
    package var signature: [UInt8]
    package init(signature: [UInt8]) { self.signature = signature }
}

/// The reason why a connection, an invitation or a transfer is refused.
package struct Refusal: Sendable, Hashable {
    package var code: WireErrorCode
    /// Text for a user, untrusted, at most `WireLimits.explanation` bytes.
    package var explanation: String
    package init(code: WireErrorCode, explanation: String = "") {
        self.code = code
        self.explanation = explanation
    }
}

/// The codes of refusals. Numbers never change their meaning, and an unknown number is kept.
package struct WireErrorCode: RawRepresentable, Sendable, Hashable {
    package var rawValue: UInt16
    package init(rawValue: UInt16) { self.rawValue = rawValue }

    package static let protocolViolation = WireErrorCode(rawValue: 1)
    package static let versionUnsupported = WireErrorCode(rawValue: 2)
    package static let serviceMismatch = WireErrorCode(rawValue: 3)
    package static let identityMismatch = WireErrorCode(rawValue: 4)
    package static let encryptionMismatch = WireErrorCode(rawValue: 5)
    package static let downgradeDetected = WireErrorCode(rawValue: 6)
    package static let timedOut = WireErrorCode(rawValue: 7)
    package static let busy = WireErrorCode(rawValue: 8)
    /// Another connection between the same two peers has replaced this one.
    package static let superseded = WireErrorCode(rawValue: 9)
    package static let unsupported = WireErrorCode(rawValue: 10)
    package static let declined = WireErrorCode(rawValue: 11)
    package static let cancelled = WireErrorCode(rawValue: 12)
    package static let inboxFull = WireErrorCode(rawValue: 13)
    package static let nameRejected = WireErrorCode(rawValue: 14)
    package static let tooLarge = WireErrorCode(rawValue: 15)
    package static let noSpace = WireErrorCode(rawValue: 16)
    package static let digestMismatch = WireErrorCode(rawValue: 17)
    package static let sourceChanged = WireErrorCode(rawValue: 18)
    package static let unavailable = WireErrorCode(rawValue: 19)
    package static let notConnected = WireErrorCode(rawValue: 20)
    package static let conflict = WireErrorCode(rawValue: 21)
}

package struct Invite: Sendable, Hashable {
    package var id: InvitationID
    /// The time that the inviter will wait from now, 1 to `WireLimits.invitationTimeoutMilliseconds`.
    package var timeoutMilliseconds: UInt32
    /// Opaque to Earshot, at most `WireLimits.invitationContext` bytes.
    package var context: [UInt8]
    package init(id: InvitationID, timeoutMilliseconds: UInt32, context: [UInt8]) {
        self.id = id
        self.timeoutMilliseconds = timeoutMilliseconds
        self.context = context
    }
}

package struct InviteAnswer: Sendable, Hashable {
    package enum Decision: Sendable, Hashable {
        case accepted(SessionID)
        case declined
        /// The invitee keeps no more invitations pending.
        case busy
    }
    package var id: InvitationID
    package var decision: Decision
    package init(id: InvitationID, decision: Decision) {
        self.id = id
        self.decision = decision
    }
}

package struct InviteWithdraw: Sendable, Hashable {
    package enum Reason: UInt8, Sendable, Hashable {
        case withdrawn = 1
        case timedOut = 2
    }
    package var id: InvitationID
    package var reason: Reason
    package init(id: InvitationID, reason: Reason) {
        self.id = id
        self.reason = reason
    }
}

package struct MessageFrame: Sendable, Hashable {
    /// Added to the mode on the wire if the frame has the field ``inReplyTo``.
    static let replyFlag: UInt8 = 0x80

    package enum Mode: UInt8, Sendable, Hashable {
        case reliable = 1
        case unreliable = 2
        /// Reliable, and the sender has received every refusal of its earlier messages on this connection: see "Messages" in the DocC
        /// article.
        case resumed = 3
    }
    package var session: SessionID
    package var id: MessageID
    package var mode: Mode
    /// The message's position among the sender's: it rises within a connection, except that a retry keeps its own.
    package var sequence: UInt64
    /// Milliseconds since 1970-01-01T00:00:00Z by the sender's clock.
    package var sentAtMilliseconds: Int64
    /// The message to which this one replies, as its sender says. Sent only if both hellos carry ``HelloExtension/replies``.
    package var inReplyTo: MessageID?
    package var contentType: String
    package var body: ByteBuffer
    package init(
        session: SessionID, id: MessageID, mode: Mode, sequence: UInt64, sentAtMilliseconds: Int64, inReplyTo: MessageID? = nil,
        contentType: String, body: ByteBuffer
    ) {
        self.session = session
        self.id = id
        self.mode = mode
        self.sequence = sequence
        self.sentAtMilliseconds = sentAtMilliseconds
        self.inReplyTo = inReplyTo
        self.contentType = contentType
        self.body = body
    }
}

/// The outcome of a message at its receiver.
package struct MessageReceipt: Sendable, Hashable {
    package enum Outcome: UInt8, Sendable, Hashable {
        /// Committed to the receiver's inbox.
        case delivered = 1
        case read = 2
        case inboxFull = 3
        /// The receiver does not know the session, or cannot store the message now.
        case refused = 4
        /// In the opposite direction: the message's sender has noted `read`.
        case noted = 5
    }
    package var id: MessageID
    package var outcome: Outcome
    package init(id: MessageID, outcome: Outcome) {
        self.id = id
        self.outcome = outcome
    }
}

/// The request for a data connection.
package struct DataTicket: Sendable, Hashable {
    package var transfer: TransferID
    package var token: DataToken
    package init(transfer: TransferID, token: DataToken) {
        self.transfer = transfer
        self.token = token
    }
}

/// `WireLimits.dataToken` random bytes that only the two peers of a control connection know.
package struct DataToken: Sendable, Hashable {
    package let bytes: [UInt8]

    /// Creates a token; `nil` for any other length than `WireLimits.dataToken`.
    package init?(bytes: [UInt8]) {
        guard bytes.count == WireLimits.dataToken else { return nil }
        self.bytes = bytes
    }

    /// Creates a fresh token from the system's randomness.
    package init() {
        self.bytes = .random(count: WireLimits.dataToken)
    }

    /// Creates a fresh token. The generator's output must be unpredictable.
    package init(using generator: inout some RandomNumberGenerator) {
        self.bytes = (0..<WireLimits.dataToken).map { _ in UInt8(truncatingIfNeeded: generator.next()) }
    }
}
