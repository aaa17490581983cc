import EarshotWire
import NIOCore

/// The vectors of the state machines: what comes and goes in order, and what is to become of each frame.
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
            /// The frame that answers at once.
            var reply: String?
        }
        let name: String
        /// Whether this side's peer id is the lower one.
        let isLower: Bool
        /// Whether both hellos carry the extension `stream reroute`.
        let reroutesStreams: Bool
        /// Whether both hellos carry the extension `groups`, where the case is about groups.
        var knowsGroups: Bool?
        /// Whether both hellos carry the extension `file attributes`, where the case is about them.
        var takesAttributes: Bool?
        let steps: [Step]
    }

    /// What one side makes of the other's hello, and what follows it.
    struct HandshakeCheck: Codable, Sendable {
        let name: String
        /// This side's.
        let role: String
        let transport: String
        /// The key of the other side's certificate, over TLS.
        var certificateKey: String?
        /// The peer id that was dialled, where one was.
        var dialled: String?
        /// Whether the other side's key has spoken TLS with this side before.
        let hasSpokenTLS: Bool
        /// This side's seed of an Ed25519 key (RFC 8032), 32 bytes, and its hello's payload.
        let privateKey: String
        let hello: String
        /// What the other side sends behind its preamble.
        let received: String
        /// `waits` for more, `answers` with hello and proof, `proven`, `refused`, or `ended` by the other side.
        let verdict: String
        /// The number in the refusal; 0 where there is none.
        let code: UInt16
    }

    /// A comparison of digits, from one side.
    struct Comparison: Codable, Sendable {
        struct Step: Codable, Sendable {
            /// `asks`: the person here asks, and this side draws `nonce`, and `attempt` for one of its own. `ends`: the person here gives up.
            /// `received`: a frame, in `hex`.
            let event: String
            var attempt: String?
            var nonce: String?
            var hex: String?
            /// `send`, `none`, `requested`, `gives-way`, `reveal`, `show`, `ended`, `ignore` or `violation`.
            let verdict: String
            /// The frame that goes out.
            var sends: String?
            var digits: String?
        }
        let name: String
        let isLower: Bool
        /// What T is made of: the payloads of the two hellos, here of no meaning, and the transport.
        let initiatorHello: String
        let responderHello: String
        let transport: String
        let steps: [Step]
    }

    /// What comes on a data connection behind `data-attach`.
    struct DataBytes: Codable, Sendable {
        let name: String
        let hex: String
        /// The bytes of the transfer.
        let bytes: String
        /// `open`, `ended`, or what is wrong: `too-long`, `unknown-type`, `after-the-end`. A connection that is wrong is closed without a word.
        let verdict: String
    }

    /// The frame's name in the specification.
    static func name(of type: FrameType) -> String {
        "\(type)".reduce(into: "") { name, letter in name += letter.isUppercase ? "-\(letter.lowercased())" : "\(letter)" }
    }
}
