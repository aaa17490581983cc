import Crypto
import EarshotWire
import NIOCore
import Testing

/// One of the two peers of the vectors: an Ed25519 key (RFC 8032), whose signatures are the same each time, and a hello.
struct VectorPeer {
    let key: Curve25519.Signing.PrivateKey
    var hello: Hello

    /// A key of the 32 bytes from `first` on, and a nonce of nothing but `nonce`.
    init(
        _ name: String, first: UInt8, nonce: UInt8, encryption: EncryptionPreference = .none,
        extensions: [HelloExtension] = [.streamReroute]
    ) throws {
        self.key = try Curve25519.Signing.PrivateKey(rawRepresentation: Array(first..<first + 32))
        self.hello = try Fixtures.hello(
            publicKey: ProofVerifier.ed25519Prefix + Array(self.key.publicKey.rawRepresentation), scheme: .ed25519, nonce: nonce,
            name: name,
            encryption: encryption, extensions: extensions)
    }

    static func alice(nonce: UInt8 = 0xA1, _ encryption: EncryptionPreference = .none) throws -> VectorPeer {
        try VectorPeer("alice", first: 1, nonce: nonce, encryption: encryption)
    }
    static func bob(nonce: UInt8 = 0xB2, _ encryption: EncryptionPreference = .none) throws -> VectorPeer {
        try VectorPeer("bob", first: 33, nonce: nonce, encryption: encryption)
    }

    var id: PeerID { PeerID(subjectPublicKeyInfo: self.hello.publicKey) }

    /// Returns this peer's proof if both sides have received the same bytes.
    func proof(as role: HandshakeRole, to other: Hello, over transport: TransportKind) throws -> Proof {
        let payloads = [try FrameEncoder.payload(of: self.hello), try FrameEncoder.payload(of: other)]
        let transcript = Transcript(
            initiatorHello: payloads[role == .initiator ? 0 : 1], responderHello: payloads[role == .initiator ? 1 : 0], transport: transport
        )
        return Proof(signature: Array(try self.key.signature(for: transcript.proofInput(of: role))))
    }
}

/// One side's verdict on the other side's hello, for each check of "Handshake" and for the order of frames.
enum HandshakeCases {
    /// A handshake from Alice's side. Alice is the responder unless `role` says otherwise, and Bob is the other side.
    private struct Case {
        var name: String
        var role = HandshakeRole.responder
        var transport = TransportKind.tls
        var alice: VectorPeer
        var bob: VectorPeer
        var certificateKey: [UInt8]?
        var dialled: PeerID?
        var hasSpokenTLS = false
        /// The frames that replace Bob's hello.
        var received: [Frame]?
        /// The bytes in front of those frames.
        var before: [UInt8] = []
        var verdict = "refused"
        var code = WireErrorCode(rawValue: 0)

        init(_ name: String, _ verdict: String = "refused", _ code: WireErrorCode = WireErrorCode(rawValue: 0)) throws {
            self.name = name
            self.verdict = verdict
            self.code = code
            self.alice = try .alice(.required)
            self.bob = try .bob(.required)
        }

        func vector() throws -> Vectors.HandshakeCheck {
            var bytes = ByteBuffer(bytes: self.before)
            for frame in self.received ?? [.hello(self.bob.hello)] { try FrameEncoder.encode(frame, into: &bytes) }
            return Vectors.HandshakeCheck(
                name: self.name, role: self.role.rawValue, transport: self.transport.rawValue,
                certificateKey: self.transport == .tls ? (self.certificateKey ?? self.bob.hello.publicKey).hexadecimal : nil,
                dialled: self.dialled?.description, hasSpokenTLS: self.hasSpokenTLS,
                privateKey: self.alice.key.rawRepresentation.hexadecimal,
                hello: try FrameEncoder.payload(of: self.alice.hello).hexadecimal, received: bytes.readableBytesView.hexadecimal,
                verdict: self.verdict, code: self.code.rawValue)
        }
    }

    private static func make(
        _ name: String, _ verdict: String = "refused", _ code: WireErrorCode = WireErrorCode(rawValue: 0),
        _ change: (inout Case) throws -> Void = { _ in }
    ) throws -> Vectors.HandshakeCheck {
        var made = try Case(name, verdict, code)
        try change(&made)
        return try made.vector()
    }

    static func all() throws -> [Vectors.HandshakeCheck] { try self.checks() + self.preferences() + self.order() + self.proofs() }

    private static func checks() throws -> [Vectors.HandshakeCheck] {
        let chess = try ServiceType("chess")
        return [
            try make("a responder answers a good hello", "answers"),
            try make("an initiator waits for the proof", "waits") { $0.role = .initiator },
            try make("extensions of unknown type, and one of them twice", "answers") {
                $0.bob.hello.extensions = [
                    HelloExtension(type: 0xFF01, data: [1]), .streamReroute, HelloExtension(type: 2, data: [1, 2, 3]),
                ]
            },
            try make("its key is this side's own", "refused", .identityMismatch) {
                $0.bob.hello.publicKey = $0.alice.hello.publicKey
            },
            try make("its nonce is this side's own", "refused", .protocolViolation) { $0.bob.hello.nonce = $0.alice.hello.nonce },
            try make("no version in common", "refused", .versionUnsupported) { $0.bob.hello.versions = 2...3 },
            try make("another service type", "refused", .serviceMismatch) { $0.bob.hello.serviceType = chess },
            try make("an unknown scheme", "refused", .unsupported) { $0.bob.hello.signatureScheme = SignatureScheme(rawValue: 0x0203) },
            try make("a P-256 key under the scheme of P-384", "refused", .unsupported) {
                let key = try P256.Signing.PrivateKey(rawRepresentation: Array(1...32)).publicKey
                $0.bob.hello.publicKey = Array(key.derRepresentation)
                $0.bob.hello.signatureScheme = .ecdsaSecp384r1SHA384
            },
            try make("an Ed25519 key under the scheme of P-256", "refused", .unsupported) {
                $0.bob.hello.signatureScheme = .ecdsaSecp256r1SHA256
            },
            try make("a key with a byte more", "refused", .unsupported) { $0.bob.hello.publicKey += [0] },
            try make("a compressed point", "refused", .unsupported) {
                let key = try P256.Signing.PrivateKey(rawRepresentation: Array(1...32)).publicKey
                let der = Array(key.derRepresentation)
                $0.bob.hello.publicKey = [0x30, 57] + der[2..<23] + [0x03, 34, 0] + Array(key.compressedRepresentation)
                $0.bob.hello.signatureScheme = .ecdsaSecp256r1SHA256
            },
            try make("another key than the certificate's", "refused", .identityMismatch) { $0.certificateKey = $0.alice.hello.publicKey },
            try make("another id than the one dialled", "refused", .identityMismatch) {
                $0.role = .initiator
                $0.dialled = $0.alice.id
            },
            try make("the id that was dialled", "waits") {
                $0.role = .initiator
                $0.dialled = $0.bob.id
            },
            try make("the checks go in their order: the service type before the scheme", "refused", .serviceMismatch) {
                $0.bob.hello.serviceType = chess
                $0.bob.hello.signatureScheme = SignatureScheme(rawValue: 0x0203)
            },
        ]
    }

    private static func preferences() throws -> [Vectors.HandshakeCheck] {
        func pair(
            _ name: String, _ transport: TransportKind, _ ours: EncryptionPreference, _ theirs: EncryptionPreference, _ verdict: String,
            _ code: WireErrorCode = WireErrorCode(rawValue: 0), hasSpokenTLS: Bool = false
        ) throws -> Vectors.HandshakeCheck {
            try make(name, verdict, code) {
                $0.transport = transport
                $0.alice.hello.encryption = ours
                $0.bob.hello.encryption = theirs
                $0.hasSpokenTLS = hasSpokenTLS
            }
        }
        return [
            try pair("optional and optional, over TLS", .tls, .optional, .optional, "answers"),
            try pair("optional and none, in plaintext", .plaintext, .optional, .none, "answers"),
            try pair("required and none", .tls, .required, .none, "refused", .encryptionMismatch),
            try pair("none and required, in plaintext", .plaintext, .none, .required, "refused", .encryptionMismatch),
            try pair("none and optional, over TLS", .tls, .optional, .none, "refused", .encryptionMismatch),
            try pair("optional and optional, in plaintext", .plaintext, .optional, .optional, "refused", .downgradeDetected),
            try pair("optional and required, in plaintext", .plaintext, .optional, .required, "refused", .downgradeDetected),
            try pair(
                "in plaintext, from a peer that has spoken TLS", .plaintext, .optional, .none, "refused", .downgradeDetected,
                hasSpokenTLS: true),
            try pair("the same, where this side's preference is none", .plaintext, .none, .none, "answers", hasSpokenTLS: true),
        ]
    }

    private static func order() throws -> [Vectors.HandshakeCheck] {
        let proof = Frame.proof(Proof(signature: [1]))
        return [
            try make("a proof before the hello", "refused", .protocolViolation) { $0.received = [proof] },
            try make("a ping before the hello", "refused", .protocolViolation) { $0.received = [.ping(1)] },
            try make("an invitation before the hello", "refused", .protocolViolation) {
                $0.received = [.invite(Invite(id: Fixtures.invitation, timeoutMilliseconds: 1, context: []))]
            },
            try make("a second hello", "refused", .protocolViolation) {
                $0.role = .initiator
                $0.received = [.hello($0.bob.hello), .hello($0.bob.hello)]
            },
            try make("an unknown frame from 0x80 up is skipped", "answers") { $0.before = [0, 0, 0, 2, 0x80, 1, 2] },
            try make("an unknown frame below 0x80", "refused", .protocolViolation) { $0.before = [0, 0, 0, 0, 0x7F] },
            try make("a refusal ends it without a word", "ended") { $0.received = [.refusal(Refusal(code: .busy))] },
        ]
    }

    private static func proofs() throws -> [Vectors.HandshakeCheck] {
        func proven(
            _ name: String, _ verdict: String, _ code: WireErrorCode = WireErrorCode(rawValue: 0), _ role: HandshakeRole = .initiator,
            transport: TransportKind = .tls, proof: (VectorPeer, VectorPeer) throws -> Proof
        ) throws -> Vectors.HandshakeCheck {
            try make(name, verdict, code) {
                $0.role = role
                $0.transport = transport
                if transport == .plaintext {
                    $0.alice.hello.encryption = .optional
                    $0.bob.hello.encryption = .none
                }
                $0.received = [.hello($0.bob.hello), .proof(try proof($0.alice, $0.bob))]
            }
        }
        return [
            try proven("a responder's proof", "proven") { try $1.proof(as: .responder, to: $0.hello, over: .tls) },
            try proven("an initiator's proof", "proven", .init(rawValue: 0), .responder) {
                try $1.proof(as: .initiator, to: $0.hello, over: .tls)
            },
            try proven("a proof of the other role", "refused", .identityMismatch) {
                try $1.proof(as: .initiator, to: $0.hello, over: .tls)
            },
            try proven("a proof over another transport", "refused", .identityMismatch) {
                try $1.proof(as: .responder, to: $0.hello, over: .plaintext)
            },
            try proven("a proof by another key", "refused", .identityMismatch) { alice, bob in
                var forger = alice
                forger.hello = bob.hello
                return try forger.proof(as: .responder, to: alice.hello, over: .tls)
            },
            try proven("a preference was rewritten on its way", "refused", .downgradeDetected, transport: .plaintext) { alice, bob in
                // Bob is `optional`, and was shown that Alice is `none`; Alice is shown that Bob is.
                var (shown, own) = (alice, bob)
                shown.hello.encryption = .none
                own.hello.encryption = .optional
                return try own.proof(as: .responder, to: shown.hello, over: .plaintext)
            },
        ]
    }
}
