/// The reason why bytes, a frame or a handshake are not acceptable. Each closes its connection with the ``refusal`` that it maps to.
package enum WireError: Error, Hashable, Sendable, CustomStringConvertible {
    /// A field of a frame is truncated, too long, out of its range, not UTF-8, or followed by more bytes.
    case malformed(FrameType, field: String)
    /// A header announces a longer payload than its type, or the phase of the connection, allows.
    case tooLong(type: UInt8, length: UInt32, limit: Int)
    /// A frame with a number below 0x80 that this version does not know.
    case unknownType(UInt8)
    /// A data connection continues after its end.
    case afterDataEnd
    /// A data connection's token was not issued by this side to this peer, or has expired.
    case unknownToken
    /// The first bytes are not the preamble.
    case foreignPreamble
    /// A frame that is not legal in this state; `why` names the rule.
    case outOfOrder(FrameType, why: String)
    /// An event that the caller may not send in this state: a bug in this program, not in the peer.
    case misuse
    /// The other side presented this side's own key.
    case ownKey
    /// The other side sent this side's own nonce back.
    case reflectedNonce
    /// The hello's key differs from the key of the TLS certificate.
    case keyNotOfCertificate
    /// The peer that answered is not the one that was dialled.
    case notTheDialled(PeerID)
    /// The proof does not verify under the hello's key.
    case badProof
    /// The two preferences agree on no transport, or on a different one than the one in use.
    case encryptionMismatch
    /// Both preferences yield TLS, and the connection is plaintext: an attacker in the middle has stripped TLS.
    case downgradeDetected
    /// The peer signed a different preference than was received, or received a different one than was sent: an attacker in the middle has
    /// rewritten it to force plaintext.
    case preferenceRewritten
    /// The peer has spoken TLS with this side before, and now connects in plaintext.
    case tlsPinned
    /// The two version ranges have nothing in common.
    case versionUnsupported
    /// The peer has a different service type.
    case serviceMismatch
    /// A signature scheme that this version cannot verify, or a key that is not of the scheme's kind in its canonical form.
    case unsupportedScheme(SignatureScheme)

    /// The error code for the peer.
    package var code: WireErrorCode {
        switch self {
        case .malformed, .tooLong, .unknownType, .afterDataEnd, .foreignPreamble, .outOfOrder, .reflectedNonce: .protocolViolation
        case .misuse: .unavailable
        case .unknownToken: .declined
        case .ownKey, .keyNotOfCertificate, .notTheDialled, .badProof: .identityMismatch
        case .encryptionMismatch: .encryptionMismatch
        case .downgradeDetected, .preferenceRewritten, .tlsPinned: .downgradeDetected
        case .versionUnsupported: .versionUnsupported
        case .serviceMismatch: .serviceMismatch
        case .unsupportedScheme: .unsupported
        }
    }

    /// The refusal, which is the connection's last frame to the peer. It repeats none of the peer's input.
    package var refusal: Refusal { Refusal(code: self.code, explanation: self.description) }

    /// One lower-case sentence. It has at most `WireLimits.explanation` bytes, because no part depends on the peer's input.
    package var description: String {
        switch self {
        case .malformed(let type, let field): "the field \(field) of a \(type) frame is malformed"
        case .tooLong(let type, let length, let limit): "a frame of type \(type) announces \(length) bytes where \(limit) are allowed"
        case .unknownType(let type): "the frame type \(type) is unknown here"
        case .afterDataEnd: "a data connection goes on behind its end"
        case .unknownToken: "no data connection of this peer is expected with this token"
        case .foreignPreamble: "the connection does not begin with earshot's preamble"
        case .outOfOrder(let type, let why): "a \(type) frame is not allowed now: \(why)"
        case .misuse: "the connection was driven out of order on this side"
        case .ownKey: "both sides have the same key: a daemon that has dialled itself, or a copy of its state directory"
        case .reflectedNonce: "the peer sent this side's own nonce back"
        case .keyNotOfCertificate: "the key in the hello is not the key of the TLS certificate"
        case .notTheDialled(let id): "the peer that answered is \(id), not the one that was dialled"
        case .badProof: "the proof does not verify under the peer's key"
        case .encryptionMismatch: "the two encryption preferences do not allow this transport"
        case .downgradeDetected: "both sides prefer TLS but the connection is plaintext"
        case .preferenceRewritten: "an encryption preference was changed on its way"
        case .tlsPinned: "the peer has used TLS before, and plaintext is not accepted from it until a user allows that"
        case .versionUnsupported: "the two sides have no protocol version in common"
        case .serviceMismatch: "the two sides are of different service types"
        case .unsupportedScheme(let scheme): "the signature scheme \(scheme.rawValue) is not supported here with the key that came"
        }
    }
}
