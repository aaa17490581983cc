/// Why bytes, a frame or a handshake are not acceptable. Each closes its connection with the ``refusal`` that it maps to.
package enum WireError: Error, Hashable, Sendable, CustomStringConvertible {
    /// A field of a frame is cut short, too long, out of its range, not UTF-8, or followed by more.
    case malformed(FrameType, field: String)
    /// A header announces a longer payload than its type, or the phase of the connection, allows.
    case tooLong(type: UInt8, length: UInt32, limit: Int)
    /// A frame of a number below 0x80 that this version does not know.
    case unknownType(UInt8)
    /// A data connection goes on behind its end.
    case afterDataEnd
    /// A data connection's token is none that this side has given to this peer, or too old.
    case unknownToken
    /// The first bytes are not the preamble.
    case foreignPreamble
    /// A frame that is not legal at this moment; `why` names the rule.
    case outOfOrder(FrameType, why: String)
    /// An event that the caller may not give in this state: a fault of this program, not of the peer.
    case misuse
    /// The other side presented this side's own key.
    case ownKey
    /// The other side sent this side's own nonce back.
    case reflectedNonce
    /// The hello's key is not the one that the TLS certificate carries.
    case keyNotOfCertificate
    /// Another peer answered than the one that was dialled.
    case notTheDialled(PeerID)
    /// The proof does not verify under the hello's key.
    case badProof
    /// The two preferences agree on no transport, or on another than the one in use.
    case encryptionMismatch
    /// Both preferences give TLS, and the connection is plaintext: a man in the middle has stripped it.
    case downgradeDetected
    /// The peer signed another preference than the one that came, or was shown another than the one that was sent: a man in the
    /// middle has rewritten it, to have plaintext.
    case preferenceRewritten
    /// The peer has spoken TLS with this side before, and now comes in plaintext.
    case tlsPinned
    /// The two version ranges have nothing in common.
    case versionUnsupported
    /// The other side is of another service type.
    case serviceMismatch
    /// A signature scheme that this version cannot verify, or a key that is none of the scheme's kind in its canonical form.
    case unsupportedScheme(SignatureScheme)

    /// The number that the other side is told.
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

    /// What goes to the other side as the connection's last frame. It repeats nothing that the peer sent.
    package var refusal: Refusal { Refusal(code: self.code, explanation: self.description) }

    /// One lower-case sentence; at most `WireLimits.explanation` bytes, because nothing in it is of the peer's length.
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
        case .tlsPinned: "the peer has spoken TLS before, and plaintext is not accepted from it until a person allows that"
        case .versionUnsupported: "the two sides have no protocol version in common"
        case .serviceMismatch: "the two sides are of different service types"
        case .unsupportedScheme(let scheme): "the signature scheme \(scheme.rawValue) is not supported here with the key that came"
        }
    }
}
