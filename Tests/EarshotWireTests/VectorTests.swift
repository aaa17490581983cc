import Crypto
import EarshotWire
import Foundation
import NIOCore
import Testing

@Suite struct VectorTests {
    private func buffer(_ hex: String) throws -> ByteBuffer { ByteBuffer(bytes: try #require(bytes(hexadecimal: hex))) }

    @Test func theFolderHoldsExactlyTheFilesThatAreRead() throws {
        let folder = try #require(Vectors.folder)
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        #expect(Set(names) == Set(Vectors.files.map { "\($0).json" }))
    }

    @Test func framesDecodeAndEncode() throws {
        let vectors = try Vectors.load("frames", as: [Vectors.FrameVector].self)
        let fixtures = try Fixtures.frames()
        #expect(vectors.map(\.name) == fixtures.map(\.name))
        #expect(Set(vectors.map(\.type)) == Set(FrameType.allCases.map(\.rawValue)))
        for (vector, fixture) in zip(vectors, fixtures) {
            let bytes = try self.buffer(vector.hex)
            #expect(try decodeAll([bytes]) == [fixture.frame], "\(vector.name)")
            #expect(try fixture.frame.encoded() == bytes, "\(vector.name)")
            #expect(vector.type == fixture.frame.type.rawValue)
        }
    }

    @Test func malformedBytesAreRefusedForTheReasonGiven() throws {
        let vectors = try Vectors.load("malformed", as: [Vectors.Malformed].self)
        #expect(vectors.count > 50)
        for vector in vectors {
            let bytes = try self.buffer(vector.hex)
            do {
                switch vector.phase {
                case "preamble":
                    var decoder = PreambleDecoder()
                    var rest = bytes
                    _ = try decoder.consume(&rest)
                case "unproven": _ = try decodeAll([bytes], phase: .unproven)
                case "proven": _ = try decodeAll([bytes], phase: .proven)
                default: Issue.record("unknown phase \(vector.phase)")
                }
                Issue.record("accepted: \(vector.name)")
            } catch let error as WireError {
                #expect(Vectors.key(of: error) == vector.error, "\(vector.name)")
                #expect(error.code.rawValue == vector.code, "\(vector.name)")
            }
        }
    }

    @Test func identifiersAreWrittenAndRead() throws {
        let vectors = try Vectors.load("identifiers", as: Vectors.Identifiers.self)
        #expect(!vectors.base32.isEmpty && !vectors.peers.isEmpty && !vectors.uuids.isEmpty)
        for vector in vectors.base32 {
            let raw = try #require(bytes(hexadecimal: vector.hex))
            #expect(Base32.encode(raw) == vector.text)
            #expect(Base32.decode(vector.text) == raw)
            #expect(Base32.decode(vector.text.lowercased()) == raw)
        }
        for text in vectors.invalidBase32 { #expect(Base32.decode(text) == nil, "\(text)") }
        for vector in vectors.peers {
            let id = PeerID(subjectPublicKeyInfo: try #require(bytes(hexadecimal: vector.publicKey)))
            #expect(id.description == vector.peerID)
            #expect(PeerID(vector.peerID) == id)
            #expect(PeerID(vector.peerID.lowercased()) == id)
        }
        for text in vectors.invalidPeerIDs { #expect(PeerID(text) == nil, "\(text)") }
        for vector in vectors.uuids {
            let id = try #require(SessionID(vector.text))
            #expect(id.description == vector.text)
            #expect(SessionID(vector.hex) == id)
            #expect(SessionID(vector.text.uppercased()) == id)
        }
        for text in vectors.invalidUUIDs { #expect(SessionID(text) == nil, "\(text)") }
    }

    @Test func handshakesRunFromTheirBytes() throws {
        let vectors = try Vectors.load("handshakes", as: [Vectors.Handshake].self)
        #expect(Set(vectors.map(\.transport)) == Set(TransportKind.allCases.map(\.rawValue)))
        for vector in vectors {
            for role in HandshakeRole.allCases { try self.run(vector, as: role) }
        }
    }

    /// One side's machine, fed with what the other one sends.
    private func run(_ vector: Vectors.Handshake, as role: HandshakeRole) throws {
        let (ours, theirs) = role == .initiator ? (vector.initiator, vector.responder) : (vector.responder, vector.initiator)
        let ourKey = try P256.Signing.PrivateKey(rawRepresentation: try #require(bytes(hexadecimal: ours.privateKey)))
        let theirKey = try #require(bytes(hexadecimal: theirs.publicKey))
        #expect(ourKey.publicKey.derRepresentation.hexadecimal == ours.publicKey)
        #expect(PeerID(subjectPublicKeyInfo: theirKey).description == theirs.peerID)

        guard case .hello(let hello) = try FrameParser.parse(try self.buffer(ours.hello), of: .hello) else { return }
        #expect(hello.encryption.rawValue == ours.encryption)
        let carrier: HandshakeStateMachine.Carrier = vector.transport == "tls" ? .tls(peerKey: theirKey) : .plaintext
        var machine = HandshakeStateMachine(role: role, hello: hello, carrier: carrier, expectedPeer: PeerID(theirs.peerID))
        _ = machine.start()

        var input = try self.buffer(theirs.sends)
        var preamble = PreambleDecoder()
        #expect(try preamble.consume(&input))
        var proven: ProvenPeer?
        var sent = WireLimits.preamble
        for frame in try decodeAll([input], phase: .unproven) {
            switch machine.received(frame) {
            case .wait: break
            case .sign(let input): proven = try self.sign(input, with: &machine, as: ours, into: &sent) ?? proven
            case .verify(let check):
                #expect(check.input.hexadecimal == theirs.proofInput)
                #expect(ProofVerifier.isValid(check))
                switch machine.verified(true) {
                case .sign(let input): proven = try self.sign(input, with: &machine, as: ours, into: &sent)
                case .proven(let peer): proven = peer
                case .refuse(let error): Issue.record("\(error)")
                case .refuseUnproven: Issue.record("not proven")
                }
            case .refuse(let error): Issue.record("\(error)")
            case .refused, .ignore: Issue.record("ended")
            }
        }
        #expect(try #require(proven).transcript.hash.hexadecimal == vector.transcript)
        #expect(proven?.id.description == theirs.peerID)
        if role == .initiator {
            // The hello went out at the start.
            var frame = ByteBuffer()
            try FrameEncoder.encode(.hello(hello), into: &frame)
            sent.insert(contentsOf: frame.readableBytesView, at: WireLimits.preamble.count)
        }
        #expect(sent.hexadecimal == ours.sends)
    }

    private func sign(
        _ input: [UInt8], with machine: inout HandshakeStateMachine, as side: Vectors.Handshake.Side, into sent: inout [UInt8]
    ) throws -> ProvenPeer? {
        #expect(input.hexadecimal == side.proofInput)
        var frames = ByteBuffer()
        defer { sent += frames.readableBytesView }
        switch machine.signed(try #require(bytes(hexadecimal: side.signature))) {
        case .send(let hello, let proof):
            try FrameEncoder.encode(.hello(hello), into: &frames)
            try FrameEncoder.encode(.proof(proof), into: &frames)
            return nil
        case .sendAndFinish(let proof, let peer):
            try FrameEncoder.encode(.proof(proof), into: &frames)
            return peer
        case .refuse(let error):
            Issue.record("\(error)")
            return nil
        }
    }
}
