import EarshotWire
import NIOCore

/// The vectors of the state machines: the received and sent frames in order, and the verdict on each.
extension Vectors {
    /// A connection between two proven peers, from one side.
    struct Connection: Codable, Sendable {
        struct Step: Codable, Sendable {
            /// `received` or `sent`, by this side.
            let event: String
            /// The frame's name.
            let frame: String
            /// The whole frame, header included.
            let hex: String
            /// `deliver`, `ignore`, `reply` or `violation` of what was received; `send` or `drop` of what is about to be sent.
            let verdict: String
            /// The frame that answers immediately.
            var reply: String?
        }
        let name: String
        /// Whether this side's peer id is the lower one.
        let isLower: Bool
        /// Whether both hellos carry the extension `stream reroute`.
        let reroutesStreams: Bool
        /// Whether both hellos carry the extension `groups`, if the case is about groups.
        var knowsGroups: Bool?
        /// Whether both hellos carry the extension `file attributes`, if the case is about them.
        var takesAttributes: Bool?
        /// Whether both hellos carry the extension `replies`, if the case is about them.
        var takesReplies: Bool?
        let steps: [Step]
    }

    /// One side's verdict on the other side's hello and the frames after it.
    struct HandshakeCheck: Codable, Sendable {
        let name: String
        /// This side's role.
        let role: String
        let transport: String
        /// The key of the other side's certificate, over TLS.
        var certificateKey: String?
        /// The dialled peer id, if there is one.
        var dialled: String?
        /// Whether the other side's key has spoken TLS with this side before.
        let hasSpokenTLS: Bool
        /// This side's seed of an Ed25519 key (RFC 8032), 32 bytes, and its hello's payload.
        let privateKey: String
        let hello: String
        /// The bytes that the other side sends after its preamble.
        let received: String
        /// `waits` for more, `answers` with hello and proof, `proven`, `refused`, or `ended` by the other side.
        let verdict: String
        /// The number in the refusal; 0 if there is no refusal.
        let code: UInt16
    }

    /// A comparison of digits, from one side.
    struct Comparison: Codable, Sendable {
        struct Step: Codable, Sendable {
            /// `asks`: the local user asks, and this side draws `nonce`, and `attempt` for an attempt of its own. `ends`: the local user
            /// cancels. `received`: a frame arrives, in `hex`.
            let event: String
            var attempt: String?
            var nonce: String?
            var hex: String?
            /// `send`, `none`, `requested`, `gives-way`, `reveal`, `show`, `ended`, `ignore` or `violation`.
            let verdict: String
            /// The frame that is sent.
            var sends: String?
            var digits: String?
        }
        let name: String
        let isLower: Bool
        /// The parts of the transcript T: the payloads of the two hellos, which have no meaning here, and the transport.
        let initiatorHello: String
        let responderHello: String
        let transport: String
        let steps: [Step]
    }

    /// The bytes on a data connection after `data-attach`.
    struct DataBytes: Codable, Sendable {
        let name: String
        let hex: String
        /// The bytes of the transfer.
        let bytes: String
        /// `open`, `ended`, or an error: `too-long`, `unknown-type`, `after-the-end`. An error closes the connection without a frame.
        let verdict: String
    }

    /// The frame's name in the specification.
    static func name(of type: FrameType) -> String {
        "\(type)".reduce(into: "") { name, letter in name += letter.isUppercase ? "-\(letter.lowercased())" : "\(letter)" }
    }
}
