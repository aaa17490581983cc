import Crypto
import EarshotWire
import Foundation
import NIOCore
import Testing

/// The published vectors are what this code makes of the fixtures; where `EARSHOT_WRITE_VECTORS` names a folder they are written
/// there anew, for when the format itself changes.
@Suite struct VectorWriting {
    /// ECDSA signs with a fresh random number each time, so that these bytes differ; ``VectorTests`` verifies the signatures.
    private static let signed: Set<String> = ["handshakes"]

    private func write(_ value: some Encodable, to name: String) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        var data = try encoder.encode(value)
        data.append(UInt8(ascii: "\n"))
        if let folder = ProcessInfo.processInfo.environment["EARSHOT_WRITE_VECTORS"] {
            try data.write(to: URL(fileURLWithPath: folder).appendingPathComponent("\(name).json"))
        } else {
            let published = try Data(contentsOf: #require(Vectors.folder).appendingPathComponent("\(name).json"))
            #expect(data == published || Self.signed.contains(name))
        }
    }

    @Test func frameVectorsAreWritten() throws {
        let vectors = try Fixtures.frames().map {
            Vectors.FrameVector(
                name: $0.name, type: $0.frame.type.rawValue, note: $0.note, hex: try $0.frame.encoded().readableBytesView.hexadecimal)
        }
        try self.write(vectors, to: "frames")
    }

    private func frame(_ type: UInt8, _ payload: some Collection<UInt8>) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: payload.count >> $0) } + [type] + payload
    }

    private static let wholeSecond = [0] + Array(repeating: 0, count: 8) + [0x3B, 0x9A, 0xCA, 0x00] as [UInt8]

    @Test func malformedVectorsAreWritten() throws {
        var vectors: [Vectors.Malformed] = []
        func add(_ name: String, _ bytes: [UInt8], _ error: String, phase: String = "proven") {
            vectors.append(Vectors.Malformed(name: name, phase: phase, hex: bytes.hexadecimal, error: error, code: 1))
        }
        add("preamble in lower case", Array("earshot\n".utf8), "foreign-preamble", phase: "preamble")
        add("preamble cut by a line feed", Array("EARS\n".utf8), "foreign-preamble", phase: "preamble")
        add("TLS record", [0x16, 3, 1, 0, 0], "foreign-preamble", phase: "preamble")
        add("unknown type 0x04", self.frame(0x04, []), "unknown-type")
        add("unknown type 0x7f", self.frame(0x7F, [1]), "unknown-type")
        for (length, type, phase) in [
            (8193, 0x01, "unproven"), (2049, 0x80, "unproven"), (2049, 0x30, "unproven"), (1027, 0x02, "unproven"),
            (1_049_601, 0x80, "proven"),
            (9, 0x10, "proven"), (1, 0x12, "proven"), (UInt32.max, 0x30, "proven"), (1 << 31, 0x43, "proven"),
            ((1 << 31) - 1, 0x41, "proven"),
        ] as [(UInt32, UInt8, String)] {
            let header = [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: length >> $0) } + [type]
            add("header of type \(type) with length \(length)", header, "too-long", phase: phase)
        }
        for named in try Fixtures.frames() {
            let whole = Array(try named.frame.encoded().readableBytesView)
            let payload = whole.dropFirst(WireLimits.frameHeaderLength)
            let limit = named.frame.type.payloadLimit
            // The two lengths of a chunk or of a stream's data disagree; a payload as long as its type allows cannot be longer.
            if payload.count < limit {
                let field = [.resourceChunk, .streamData].contains(named.frame.type) ? "data" : "end"
                add("\(named.name), one byte more", self.frame(named.frame.type.rawValue, payload + [0]), "malformed \(field)")
            }
            guard !payload.isEmpty else { continue }
            do {
                _ = try FrameParser.parse(ByteBuffer(bytes: payload.dropLast()), of: named.frame.type)
                Issue.record("a shorter \(named.name) parses")
            } catch {
                let short = self.frame(named.frame.type.rawValue, payload.dropLast())
                add("\(named.name), one byte less", short, Vectors.key(of: error))
            }
        }
        for edge in Edge.all + Edge.ofGroups {
            for value in edge.outside.reversed() where edge.field != "versions" {
                let payload = edge.payload(value)
                guard payload.readableBytes <= min(edge.type.payloadLimit, 2048) else { continue }
                let bytes = self.frame(edge.type.rawValue, Array(payload.readableBytesView))
                add("\(edge.type)\(edge.kind), \(edge.field) of \(value)", bytes, "malformed \(edge.field)")
            }
        }
        let hello = try FrameEncoder.payload(of: try Fixtures.hello())
        add("hello, versions 2-1", self.frame(1, [2, 1] + hello.dropFirst(2)), "malformed versions", phase: "unproven")
        add("hello, versions 0-1", self.frame(1, [0, 1] + hello.dropFirst(2)), "malformed versions", phase: "unproven")
        add(
            "hello, service type in upper case", self.frame(1, self.replacing("earshot", by: "EARSHOT", in: hello)),
            "malformed service_type")
        add("hello, service type of digits", self.frame(1, self.replacing("earshot", by: "1234567", in: hello)), "malformed service_type")
        add(
            "hello, control character in the name", self.frame(1, self.replacing("alice", by: "al\u{1B}ce", in: hello)),
            "malformed display_name")
        var invalid = hello
        if let index = invalid.indices.first(where: { hello[$0...].starts(with: Array("alice".utf8)) }) { invalid[index] = 0xFF }
        add("hello, name not UTF-8", self.frame(1, invalid), "malformed display_name")
        let ids = [UInt8](repeating: 1, count: 32)
        add("stream open, control character in the name", self.frame(0x60, ids + [2, 0x61, 0x1B]), "malformed name")
        // A file of no bytes with an empty name, and what may not be behind that; a directory has nothing there.
        for (name, kind, attributes, field) in [
            ("flags of 4", 1, [4] + Array(repeating: 0, count: 12), "flags"),
            ("a second of nanoseconds", 1, Self.wholeSecond, "nanoseconds"),
            ("some cut short", 1, [0, 0, 0], "end"), ("a byte more", 1, Array(repeating: 0, count: 14), "end"),
            ("those of a directory", 2, Array(repeating: 0, count: 13), "end"),
        ] as [(String, UInt8, [UInt8], String)] {
            let offer = ids + [kind] + Array(repeating: 0, count: 10) + attributes
            add("resource offer, \(name) as attributes", self.frame(0x40, offer), "malformed \(field)")
        }
        add("refusal, surrogate in UTF-8", self.frame(3, [0, 1, 0, 3, 0xED, 0xA0, 0x80]), "malformed explanation")
        add("refusal, overlong UTF-8", self.frame(3, [0, 1, 0, 2, 0xC0, 0x80]), "malformed explanation")
        try self.write(vectors, to: "malformed")
    }

    private func replacing(_ old: String, by new: String, in bytes: [UInt8]) -> [UInt8] {
        var bytes = bytes
        let old = Array(old.utf8)
        if let start = bytes.indices.first(where: { bytes[$0...].starts(with: old) }) {
            bytes.replaceSubrange(start..<start + old.count, with: Array(new.utf8))
        }
        return bytes
    }

    @Test func identifierVectorsAreWritten() throws {
        let words = ["", "f", "fo", "foo", "foob", "fooba", "foobar"]
        let keys = try [UInt8(1), 33].map { try self.key($0) }
        let id = PeerID(subjectPublicKeyInfo: keys[0].publicKey.derRepresentation).description
        try self.write(
            Vectors.Identifiers(
                base32: words.map { .init(hex: $0.utf8.hexadecimal, text: Base32.encode($0.utf8)) },
                invalidBase32: ["M", "MY=", "MZ", "MZXW6Y", "M1", "M8", "MÉ", "M Y"],
                peers: keys.map {
                    let der = $0.publicKey.derRepresentation
                    return .init(publicKey: der.hexadecimal, peerID: PeerID(subjectPublicKeyInfo: der).description)
                },
                invalidPeerIDs: ["", String(id.dropLast()), id + "A", id + "====", id.dropLast() + "B", "1" + id.dropFirst()],
                uuids: [
                    .init(hex: "00112233445566778899aabbccddeeff", text: "00112233-4455-6677-8899-aabbccddeeff"),
                    .init(hex: "00000000000000000000000000000000", text: "00000000-0000-0000-0000-000000000000"),
                ],
                invalidUUIDs: [
                    "", "00112233-4455-6677-8899-aabbccddeef", "0011223-34455-6677-8899-aabbccddeeff", "0011223344556677-8899aabbccddeeff",
                    "g0112233445566778899aabbccddeeff", "+0112233445566778899aabbccddeeff",
                ]), to: "identifiers")
    }

    private func key(_ first: UInt8) throws -> P256.Signing.PrivateKey {
        try P256.Signing.PrivateKey(rawRepresentation: Array(first..<first + 32))
    }

    @Test func handshakeVectorsAreWritten() throws {
        let (initiator, responder) = (try self.key(1), try self.key(33))
        let handshakes = try [(TransportKind.tls, EncryptionPreference.required), (.plaintext, .none)].map { transport, preference in
            let hellos = [
                try Fixtures.hello(publicKey: Array(initiator.publicKey.derRepresentation), nonce: 0xA1, encryption: preference),
                try Fixtures.hello(
                    publicKey: Array(responder.publicKey.derRepresentation), nonce: 0xB2, name: "bob", encryption: .optional,
                    extensions: [HelloExtension(type: 0xFF01, data: [1, 2, 3])]),
            ]
            let payloads = try hellos.map { try FrameEncoder.payload(of: $0) }
            let transcript = Transcript(initiatorHello: payloads[0], responderHello: payloads[1], transport: transport)
            let sides = try zip([(HandshakeRole.initiator, initiator), (.responder, responder)], zip(hellos, payloads)).map { side, hello in
                let input = transcript.proofInput(of: side.0)
                let signature = Array(try side.1.signature(for: input).derRepresentation)
                var sends = ByteBuffer(bytes: WireLimits.preamble)
                try FrameEncoder.encode(.hello(hello.0), into: &sends)
                try FrameEncoder.encode(.proof(Proof(signature: signature)), into: &sends)
                let der = side.1.publicKey.derRepresentation
                return Vectors.Handshake.Side(
                    privateKey: side.1.rawRepresentation.hexadecimal, publicKey: der.hexadecimal,
                    peerID: PeerID(subjectPublicKeyInfo: der).description, encryption: hello.0.encryption.rawValue,
                    hello: hello.1.hexadecimal, proofInput: input.hexadecimal, signature: signature.hexadecimal,
                    sends: sends.readableBytesView.hexadecimal)
            }
            return Vectors.Handshake(
                transport: transport.rawValue, initiator: sides[0], responder: sides[1], transcript: transcript.hash.hexadecimal)
        }
        try self.write(handshakes, to: "handshakes")
    }
}
