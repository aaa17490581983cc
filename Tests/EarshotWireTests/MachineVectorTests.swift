import Crypto
import EarshotWire
import Foundation
import NIOCore
import Testing

/// The vectors of the machines: frames in, verdicts out. The tests run each vector from the published bytes.
@Suite struct MachineVectorTests {
    private typealias Step = Vectors.Connection.Step

    private func frame(_ hex: String) throws -> Frame {
        let frames = try decodeAll([ByteBuffer(bytes: try #require(bytes(hexadecimal: hex)))])
        try #require(frames.count == 1)
        return frames[0]
    }

    private func hex(_ frame: Frame) throws -> String { try frame.encoded().readableBytesView.hexadecimal }

    private func isPublished(_ value: some Encodable, as name: String) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        let data = try encoder.encode(value) + Data("\n".utf8)
        if let folder = ProcessInfo.processInfo.environment["EARSHOT_WRITE_VECTORS"] {
            try data.write(to: URL(fileURLWithPath: folder).appendingPathComponent("\(name).json"))
        } else {
            let published = try Data(contentsOf: #require(Vectors.folder).appendingPathComponent("\(name).json"))
            #expect(data == published, "\(name).json is not what its cases come to")
        }
    }

    // MARK: The published vectors match the cases

    @Test func theConnectionsArePublished() throws {
        let vectors = try ConnectionCase.all().map { one in
            Vectors.Connection(
                name: one.name, isLower: one.isLower, reroutesStreams: one.reroutesStreams, knowsGroups: one.knowsGroups,
                takesAttributes: one.takesAttributes, takesReplies: one.takesReplies,
                steps: try one.steps.map { try self.step($0) })
        }
        #expect(Set(vectors.map(\.name)).count == vectors.count)
        try self.isPublished(vectors, as: "connections")
    }

    private func step(_ step: ConnectionCase.Step) throws -> Step {
        func made(_ event: String, _ frame: Frame, _ verdict: String, _ reply: Frame? = nil) throws -> Step {
            Step(
                event: event, frame: Vectors.name(of: frame.type), hex: try self.hex(frame), verdict: verdict,
                reply: try reply.map { try self.hex($0) })
        }
        return switch step {
        case .received(let frame, let verdict): try made("received", frame, verdict.rawValue)
        case .answered(let frame, let reply): try made("received", frame, "reply", reply)
        case .sent(let frame): try made("sent", frame, "send")
        case .held(let frame): try made("sent", frame, "drop")
        }
    }

    @Test func theHandshakesArePublished() throws { try self.isPublished(try HandshakeCases.all(), as: "handshake-checks") }

    @Test func theComparisonsArePublished() throws { try self.isPublished(try ComparisonCases().all(), as: "comparisons") }

    @Test func theDataIsPublished() throws { try self.isPublished(try self.dataBytes(), as: "data") }

    // MARK: The machines do what is published

    @Test func connectionsRunFromTheirBytes() throws {
        let vectors = try Vectors.load("connections", as: [Vectors.Connection].self)
        #expect(vectors.count > 130)
        let ids = [PeerID(subjectPublicKeyInfo: [1]), PeerID(subjectPublicKeyInfo: [2])].sorted()
        for vector in vectors {
            var machine = ConnectionStateMachine(
                localID: ids[vector.isLower ? 0 : 1], peerID: ids[vector.isLower ? 1 : 0], reroutesStreams: vector.reroutesStreams,
                knowsGroups: vector.knowsGroups ?? true, takesAttributes: vector.takesAttributes ?? true,
                takesReplies: vector.takesReplies ?? true)
            for (number, step) in vector.steps.enumerated() {
                let frame = try self.frame(step.hex)
                #expect(Vectors.name(of: frame.type) == step.frame)
                let (verdict, reply) = try self.verdict(of: &machine, on: frame, step.event)
                #expect(verdict == step.verdict && reply == step.reply, "\(vector.name), step \(number + 1)")
            }
        }
        // Every frame of a control connection that has an order is in them.
        let named = Set(vectors.flatMap { $0.steps.map(\.frame) })
        let others: Set<FrameType> = [.verifyBegin, .verifyAnswer, .verifyReveal, .verifyEnd]
        for type in FrameType.allCases where !others.contains(type) { #expect(named.contains(Vectors.name(of: type)), "\(type)") }
    }

    private func verdict(
        of machine: inout ConnectionStateMachine, on frame: Frame, _ event: String
    ) throws -> (verdict: String, reply: String?) {
        guard event == "received" else { return (machine.sent(frame) == .send ? "send" : "drop", nil) }
        switch machine.received(frame) {
        case .deliver: return ("deliver", nil)
        case .ignore: return ("ignore", nil)
        case .reply(let reply): return ("reply", try self.hex(reply))
        case .violation(let error):
            #expect(error.code == .protocolViolation)
            return ("violation", nil)
        }
    }

    @Test func handshakesAreCheckedFromTheirBytes() throws {
        let vectors = try Vectors.load("handshake-checks", as: [Vectors.HandshakeCheck].self)
        #expect(vectors.count > 30)
        for vector in vectors {
            let (verdict, code) = try self.run(vector)
            #expect(verdict == vector.verdict && code.rawValue == vector.code, "\(vector.name)")
        }
    }

    private func run(_ vector: Vectors.HandshakeCheck) throws -> (verdict: String, code: WireErrorCode) {
        let none = WireErrorCode(rawValue: 0)
        let hello = ByteBuffer(bytes: try #require(bytes(hexadecimal: vector.hello)))
        guard case .hello(let ours) = try FrameParser.parse(hello, of: .hello) else { return ("no hello", none) }
        let key = try Curve25519.Signing.PrivateKey(rawRepresentation: try #require(bytes(hexadecimal: vector.privateKey)))
        let certificate = try vector.certificateKey.map { try #require(bytes(hexadecimal: $0)) }
        let isTLSPinned = vector.hasSpokenTLS
        var machine = HandshakeStateMachine(
            role: try #require(HandshakeRole(rawValue: vector.role)), hello: ours,
            carrier: certificate.map { .tls(peerKey: $0) } ?? .plaintext, expectedPeer: vector.dialled.flatMap { PeerID($0) },
            isTLSPinned: { _ in isTLSPinned })
        _ = machine.start()
        var decoder = FrameDecoder()
        decoder.feed(ByteBuffer(bytes: try #require(bytes(hexadecimal: vector.received))))
        var verdict = "waits"
        do throws(WireError) {
            while let frame = try decoder.next() {
                switch machine.received(frame) {
                case .wait, .ignore: break
                case .sign(let input):
                    guard let signature = try? key.signature(for: input) else { return ("no signature", none) }
                    if case .send = machine.signed(Array(signature)) { verdict = "answers" }
                case .verify(let check):
                    switch machine.verified(ProofVerifier.isValid(check)) {
                    case .sign: verdict = "proven"
                    case .proven: verdict = "proven"
                    case .refuse(let error): return ("refused", error.code)
                    case .refuseUnproven(let others):
                        return ("refused", (others.contains(where: ProofVerifier.isValid) ? WireError.preferenceRewritten : .badProof).code)
                    }
                case .refuse(let error): return ("refused", error.code)
                case .refused: return ("ended", none)
                }
            }
        } catch {
            return ("refused", error.code)
        }
        return (verdict, none)
    }

    @Test func comparisonsRunFromTheirBytes() throws {
        let vectors = try Vectors.load("comparisons", as: [Vectors.Comparison].self)
        #expect(vectors.count > 15)
        let ids = [PeerID(subjectPublicKeyInfo: [1]), PeerID(subjectPublicKeyInfo: [2])].sorted()
        for vector in vectors {
            let transcript = Transcript(
                initiatorHello: try #require(bytes(hexadecimal: vector.initiatorHello)),
                responderHello: try #require(bytes(hexadecimal: vector.responderHello)),
                transport: try #require(TransportKind(rawValue: vector.transport)))
            var machine = VerificationStateMachine(
                localID: ids[vector.isLower ? 0 : 1], peerID: ids[vector.isLower ? 1 : 0], transcript: transcript)
            for (number, step) in vector.steps.enumerated() {
                let made = try self.run(step, on: &machine)
                #expect(made.verdict == step.verdict, "\(vector.name), step \(number + 1)")
                #expect(made.sends == step.sends && made.digits == step.digits, "\(vector.name), step \(number + 1)")
            }
        }
    }

    private func run(
        _ step: Vectors.Comparison.Step, on machine: inout VerificationStateMachine
    ) throws -> (verdict: String, sends: String?, digits: String?) {
        func sent(_ frame: VerificationFrame) throws -> String { try self.hex(.verification(frame)) }
        switch step.event {
        case "asks":
            let id = try #require(step.attempt.flatMap { VerificationID($0) })
            switch machine.start(id: id, nonce: try #require(step.nonce.flatMap { bytes(hexadecimal: $0) })) {
            case .send(let frame): return ("send", try sent(frame), nil)
            case .alreadyUnderWay: return ("none", nil, nil)
            }
        case "ends":
            guard let frame = machine.end(.givenUp) else { return ("none", nil, nil) }
            return ("send", try sent(frame), nil)
        default: break
        }
        guard let hex = step.hex, case .verification(let frame) = try self.frame(hex) else { return ("no frame of a comparison", nil, nil) }
        switch machine.received(frame) {
        case .requested: return ("requested", nil, nil)
        case .givesWay(let end): return ("gives-way", try sent(end), nil)
        case .reveal(let reveal, let digits): return ("reveal", try sent(reveal), digits)
        case .show(let digits): return ("show", nil, digits)
        case .ended: return ("ended", nil, nil)
        case .ignore: return ("ignore", nil, nil)
        case .falseReveal(let error), .violation(let error):
            #expect(error.code == .protocolViolation)
            return ("violation", nil, nil)
        }
    }

    // MARK: Data connections

    private func dataBytes() throws -> [Vectors.DataBytes] {
        func bytes(_ frames: (DataFrame, [UInt8])..., cut: Int = 0, more: [UInt8] = []) -> String {
            var buffer = ByteBuffer()
            for (frame, bytes) in frames {
                frame.encode(into: &buffer)
                buffer.writeBytes(bytes)
            }
            return (buffer.readableBytesView.dropLast(cut) + more).hexadecimal
        }
        let hello = Array("hello".utf8)
        return [
            Vectors.DataBytes(name: "data", hex: bytes((.data(count: 5), hello)), bytes: "68656c6c6f", verdict: "open"),
            Vectors.DataBytes(name: "data-end", hex: bytes((.end, [])), bytes: "", verdict: "ended"),
            Vectors.DataBytes(
                name: "two frames and the end", hex: bytes((.data(count: 5), hello), (.data(count: 1), [0x21]), (.end, [])),
                bytes: "68656c6c6f21", verdict: "ended"),
            Vectors.DataBytes(
                name: "a frame that is not whole yet", hex: bytes((.data(count: 5), hello), cut: 2), bytes: "68656c", verdict: "open"),
            Vectors.DataBytes(name: "the longest", hex: "0040000059" + "ff", bytes: "ff", verdict: "open"),
            Vectors.DataBytes(name: "one byte longer", hex: "0040000159", bytes: "", verdict: "too-long"),
            Vectors.DataBytes(name: "data of nothing", hex: "0000000059", bytes: "", verdict: "too-long"),
            Vectors.DataBytes(name: "an end with a payload", hex: "000000015a00", bytes: "", verdict: "too-long"),
            Vectors.DataBytes(name: "a byte behind the end", hex: bytes((.end, []), more: [0]), bytes: "", verdict: "after-the-end"),
            Vectors.DataBytes(name: "another frame", hex: "0000000810" + "0000000000000001", bytes: "", verdict: "unknown-type"),
            Vectors.DataBytes(name: "a frame that is skipped elsewhere", hex: "0000000080", bytes: "", verdict: "unknown-type"),
        ]
    }

    @Test func dataIsReadFromItsBytes() throws {
        let vectors = try Vectors.load("data", as: [Vectors.DataBytes].self)
        #expect(vectors.count > 8)
        for vector in vectors {
            let whole = try #require(bytes(hexadecimal: vector.hex))
            for split in 0...whole.count {
                let (bytes, verdict) = self.read([Array(whole[..<split]), Array(whole[split...])])
                #expect(bytes.hexadecimal == vector.bytes && verdict == vector.verdict, "\(vector.name), split at \(split)")
            }
        }
    }

    private func read(_ pieces: [[UInt8]]) -> (bytes: [UInt8], verdict: String) {
        var decoder = DataFrameDecoder()
        var (bytes, verdict) = ([UInt8](), "open")
        do throws(WireError) {
            for piece in pieces {
                decoder.feed(ByteBuffer(bytes: piece))
                while let next = try decoder.next() {
                    switch next {
                    case .bytes(let more): bytes += more.readableBytesView
                    case .end: verdict = "ended"
                    }
                }
            }
        } catch {
            switch error {
            case .tooLong: verdict = "too-long"
            case .unknownType: verdict = "unknown-type"
            case .afterDataEnd: verdict = "after-the-end"
            default: verdict = "\(error)"
            }
        }
        return (bytes, verdict)
    }
}
