import EarshotSafety
import EarshotWire
import NIOCore
import Testing

/// One length or number, with a payload that is right but for it.
struct Edge: Sendable, CustomTestStringConvertible {
    let type: FrameType
    let field: String
    /// The least and the greatest that are accepted.
    let range: ClosedRange<UInt64>
    /// Which of several payloads that the type has.
    var kind = ""
    let payload: @Sendable (UInt64) -> ByteBuffer

    var testDescription: String { "\(self.type)\(self.kind) \(self.field)" }

    /// The nearest that are not accepted: a field of one byte cannot say 256, nor one of four 2^32.
    var outside: [UInt64] {
        let isWhole = self.range.upperBound == 255 || self.range.upperBound == UInt64(UInt32.max)
        return (isWhole ? [] : [self.range.upperBound + 1]) + (self.range.lowerBound > 0 ? [self.range.lowerBound - 1] : [])
    }

    static let all: [Edge] = [
        Edge(type: .hello, field: "versions", range: 1...255) { raw([0] + word8($0) + [255], helloTail()) },
        Edge(type: .hello, field: "public_key", range: 1...2048) { raw([1, 1] + word16($0) + run($0), helloTail(afterKey: true)) },
        Edge(type: .hello, field: "service_type", range: 1...15) { raw(helloHead() + word8($0) + run($0), helloEnd(service: nil)) },
        Edge(type: .hello, field: "display_name", range: 1...63) {
            raw(helloHead() + [1, 0x61] + word8($0) + run($0), [2, 0, 0])
        },
        Edge(type: .hello, field: "encryption", range: 0...2) { raw(helloHead() + [1, 0x61, 1, 0x61] + word8($0), [0, 0]) },
        Edge(type: .hello, field: "extensions", range: 0...16) {
            raw(helloHead() + [1, 0x61, 1, 0x61, 2] + word16($0), run($0 * 4, of: 0))
        },
        Edge(type: .proof, field: "signature", range: 1...1024) { raw(word16($0) + run($0), []) },
        Edge(type: .refusal, field: "explanation", range: 0...512) { raw([0, 1] + word16($0) + run($0), []) },
        Edge(type: .invite, field: "timeout", range: 1...86_400_000) { raw(run(16) + word32($0) + [0, 0], []) },
        Edge(type: .invite, field: "context", range: 0...8192) { raw(run(16) + [0, 0, 0, 1] + word16($0) + run($0), []) },
        Edge(type: .inviteAnswer, field: "decision", range: 1...3) { raw(run(16) + word8($0), run($0 == 1 ? 16 : 0)) },
        Edge(type: .inviteWithdraw, field: "reason", range: 1...2) { raw(run(16) + word8($0), []) },
        Edge(type: .message, field: "mode", range: 1...3) { raw(run(32) + word8($0) + run(16) + [1, 0x61, 0, 0, 0, 0], []) },
        Edge(type: .message, field: "content_type", range: 1...255) {
            raw(run(32) + [1] + run(16) + word8($0) + run($0), [0, 0, 0, 0])
        },
        Edge(type: .message, field: "body", range: 0...1_048_576) {
            raw(run(32) + [1] + run(16) + [1, 0x61] + word32($0), run($0))
        },
        Edge(type: .messageReceipts, field: "receipts", range: 1...1024) { raw(word16($0), run($0 * 17, of: 1)) },
        Edge(type: .messageReceipts, field: "outcome", range: 1...5) { raw([0, 1] + run(16) + word8($0), []) },
        Edge(type: .resourceOffer, field: "kind", range: 1...2) { raw(run(32) + word8($0) + run(8, of: 0) + [0, 0], []) },
        Edge(type: .resourceOffer, field: "size", range: 0...UInt64(Int64.max)) { raw(run(32) + [1] + word64($0) + [0, 0], []) },
        Edge(type: .resourceOffer, field: "name", range: 0...1024) {
            raw(run(32) + [1] + run(8, of: 0) + word16($0) + run($0), [])
        },
        Edge(type: .resourceAccept, field: "offset", range: 0...UInt64(Int64.max)) { raw(run(16) + word64($0) + word64($0), []) },
        Edge(type: .resourceAccept, field: "limit", range: 5...UInt64(Int64.max)) { raw(run(16) + word64(5) + word64($0), []) },
        Edge(type: .resourceChunk, field: "offset", range: 0...UInt64(Int64.max) - 1) {
            raw(run(16) + word64($0) + [0, 0, 0, 1, 9], [])
        },
        Edge(type: .resourceChunk, field: "data", range: 1...262_144) { raw(run(16) + word64(0) + word32($0), run($0)) },
        Edge(type: .resourceHave, field: "offset", range: 1...UInt64(Int64.max)) { raw(run(16) + word64($0) + run(16), []) },
        Edge(type: .resourceFrom, field: "offset", range: 0...UInt64(Int64.max)) { raw(run(16) + word64($0), []) },
        Edge(type: .resourceEnd, field: "algorithm", range: 1...2) { raw(run(16) + word8($0) + [1, 0], []) },
        Edge(type: .verifyEnd, field: "reason", range: 1...4) { raw(run(16) + word8($0), []) },
        Edge(type: .resourceEnd, field: "digest", range: 1...64) { raw(run(16) + [1] + word8($0) + run($0), []) },
        Edge(type: .streamOpen, field: "name", range: 1...255) { raw(run(32) + word8($0) + run($0), []) },
        Edge(type: .streamRefuse, field: "explanation", range: 0...512) { raw(run(16) + [0, 1] + word16($0) + run($0), []) },
        Edge(type: .streamData, field: "data", range: 1...262_144) { raw(run(16) + word32($0), run($0)) },
    ]
}

func raw(_ head: [UInt8], _ tail: [UInt8]) -> ByteBuffer { ByteBuffer(bytes: head + tail) }
func run(_ count: UInt64, of byte: UInt8 = 0x61) -> [UInt8] { [UInt8](repeating: byte, count: Int(count)) }
func word8(_ value: UInt64) -> [UInt8] { [UInt8(truncatingIfNeeded: value)] }
func word16(_ value: UInt64) -> [UInt8] { word8(value >> 8) + word8(value) }
func word32(_ value: UInt64) -> [UInt8] { word16(value >> 16) + word16(value) }
func word64(_ value: UInt64) -> [UInt8] { word32(value >> 32) + word32(value) }
private func helloHead() -> [UInt8] { [1, 1, 0, 1, 7, 4, 3] + run(32) }
private func helloEnd(service: String?) -> [UInt8] { [1, 0x61, 2, 0, 0] }
private func helloTail(afterKey: Bool = false) -> [UInt8] {
    (afterKey ? [] : [0, 1, 7]) + [4, 3] + run(32) + [1, 0x61] + helloEnd(service: nil)
}

@Suite struct FrameLimitTests {
    @Test(arguments: Edge.all + Edge.ofGroups) func acceptsTheEdgesAndRefusesOneMore(_ edge: Edge) throws {
        // `versions` is written behind a zero that the others do not have: its low end is tested below.
        guard edge.field != "versions" else { return }
        for value in [edge.range.lowerBound, edge.range.upperBound] {
            let payload = edge.payload(value)
            let frame = try FrameParser.parse(payload, of: edge.type)
            var encoded = try frame.encoded()
            encoded.moveReaderIndex(forwardBy: WireLimits.frameHeaderLength)
            #expect(encoded == payload)
        }
        #expect(!edge.outside.isEmpty)
        for value in edge.outside {
            #expect(throws: WireError.malformed(edge.type, field: edge.field)) {
                try FrameParser.parse(edge.payload(value), of: edge.type)
            }
        }
    }

    @Test func everyLimitOfTheSpecificationIsAnEdge() {
        let edges = Set((Edge.all + Edge.ofGroups).map(\.range.upperBound))
        let limits = [
            WireLimits.publicKey, WireLimits.signature, WireLimits.helloExtensions, WireLimits.invitationContext, WireLimits.messageBody,
            WireLimits.contentType, WireLimits.receiptsPerFrame, WireLimits.resourceName, WireLimits.chunkData, WireLimits.digest,
            WireLimits.explanation, Int(WireLimits.groupMembers), WireLimits.groupsPerFrame, WireLimits.groupIndex,
            Int(WireLimits.invitationTimeoutMilliseconds), Int(WireLimits.resourceSize),
        ]
        for limit in limits {
            #expect(edges.contains(UInt64(limit)), "no edge at \(limit)")
        }
    }

    @Test func versionsAreARangeFromOne() throws {
        let good = try FrameEncoder.payload(of: try Fixtures.hello(versions: 1...255))
        #expect(Array(good[0...1]) == [1, 255])
        for bounds: [UInt8] in [[0, 1], [2, 1], [0, 0]] {
            #expect(throws: WireError.malformed(.hello, field: "versions")) {
                try FrameParser.parse(ByteBuffer(bytes: bounds + good.dropFirst(2)), of: .hello)
            }
        }
        #expect(throws: WireError.malformed(.hello, field: "versions")) { try Frame.hello(try Fixtures.hello(versions: 0...1)).encoded() }
    }

    @Test(arguments: try Fixtures.frames().map(\.frame)) func refusesEveryTruncationAndOneMoreByte(_ frame: Frame) throws {
        var payload = try frame.encoded()
        payload.moveReaderIndex(forwardBy: WireLimits.frameHeaderLength)
        for count in 0..<payload.readableBytes {
            let short = ByteBuffer(bytes: payload.readableBytesView.prefix(count))
            // Without all of its attributes an offer is whole too.
            if case .resource(.offer(let offer)) = frame, offer.attributes != nil,
                payload.readableBytes - count == WireLimits.fileAttributes
            {
                #expect(try FrameParser.parse(short, of: frame.type) != frame)
                continue
            }
            #expect(throws: WireError.self) { try FrameParser.parse(short, of: frame.type) }
        }
        payload.writeInteger(UInt8(0))
        #expect(throws: WireError.malformed(frame.type, field: "end")) { try FrameParser.parse(payload, of: frame.type) }
    }

    @Test func encodingOverALimitThrowsAndLeavesTheBuffer() throws {
        let big = [UInt8](repeating: 0x61, count: 2_000_000)
        let text = { (count: Int) in String(repeating: "a", count: count) }
        var hello = try Fixtures.hello()
        let hellos: [(String, (inout Hello) -> Void)] = [
            ("public_key", { $0.publicKey = Array(big.prefix(WireLimits.publicKey + 1)) }),
            ("public_key", { $0.publicKey = [] }),
            ("nonce", { $0.nonce = Array(big.prefix(WireLimits.nonceLength + 1)) }),
            ("nonce", { $0.nonce = Array(big.prefix(WireLimits.nonceLength - 1)) }),
            ("extensions", { $0.extensions = .init(repeating: HelloExtension(type: 1, data: []), count: WireLimits.helloExtensions + 1) }),
            ("end", { $0.extensions = [HelloExtension(type: 1, data: Array(big.prefix(WireLimits.helloPayload)))] }),
        ]
        var frames: [(String, Frame)] = []
        for (field, change) in hellos {
            var changed = hello
            change(&changed)
            frames.append((field, .hello(changed)))
        }
        hello.extensions = []
        let body = ByteBuffer(bytes: big.prefix(WireLimits.messageBody + 1))
        let chunk = ByteBuffer(bytes: big.prefix(WireLimits.chunkData + 1))
        let id = Fixtures.resource
        frames += [
            ("signature", .proof(Proof(signature: Array(big.prefix(WireLimits.signature + 1))))),
            ("explanation", .refusal(Refusal(code: .busy, explanation: text(WireLimits.explanation + 1)))),
            ("timeout", .invite(Invite(id: Fixtures.invitation, timeoutMilliseconds: 0, context: []))),
            ("timeout", .invite(Invite(id: Fixtures.invitation, timeoutMilliseconds: 86_400_001, context: []))),
            ("context", .invite(Invite(id: Fixtures.invitation, timeoutMilliseconds: 1, context: Array(big.prefix(8193))))),
            ("body", .message(Fixtures.message(body: body))),
            ("content_type", .message(Fixtures.message(contentType: text(256)))),
            ("content_type", .message(Fixtures.message(contentType: "a\nb"))),
            ("content_type", .message(Fixtures.message(contentType: "é"))),
            ("content_type", .message(Fixtures.message(contentType: " a"))),
            ("receipts", .messageReceipts(.init(repeating: MessageReceipt(id: Fixtures.message, outcome: .read), count: 1025))),
            ("receipts", .messageReceipts([])),
            ("name", .resource(.offer(ResourceOffer(session: Fixtures.session, id: id, kind: .file, size: 0, name: text(1025))))),
            ("size", .resource(.offer(ResourceOffer(session: Fixtures.session, id: id, kind: .file, size: .max, name: "")))),
            ("limit", .resource(.accept(ResourceAccept(id: id, offset: 2, limit: 1)))),
            ("offset", .resource(.accept(ResourceAccept(id: id, offset: .max, limit: .max)))),
            ("data", .resource(.chunk(ResourceChunk(id: id, offset: 0, data: chunk)))),
            ("data", .resource(.chunk(ResourceChunk(id: id, offset: 0, data: ByteBuffer())))),
            ("offset", .resource(.chunk(ResourceChunk(id: id, offset: WireLimits.resourceSize, data: ByteBuffer(bytes: [1]))))),
            ("digest", .resource(.end(ResourceEnd(id: id, algorithm: .xxh3, digest: Array(big.prefix(65)))))),
            ("commitment", .verification(VerificationFrame(id: Fixtures.verification, .begin(commitment: Array(big.prefix(33)))))),
            ("nonce", .verification(VerificationFrame(id: Fixtures.verification, .answer(nonce: Array(big.prefix(31)))))),
            ("nonce", .verification(VerificationFrame(id: Fixtures.verification, .reveal(nonce: [])))),
        ]
        for (field, frame) in frames {
            var buffer = ByteBuffer(string: "before")
            #expect(throws: WireError.malformed(frame.type, field: field)) { try FrameEncoder.encode(frame, into: &buffer) }
            #expect(buffer == ByteBuffer(string: "before"))
        }
    }

    @Test func aPayloadLimitIsWhatTheFieldsComeTo() throws {
        let text = { (count: Int) in String(repeating: "a", count: count) }
        let refusal = Refusal(code: .busy, explanation: text(512))
        let id = Fixtures.resource
        let longest: [Frame] =
            [
                .proof(Proof(signature: [UInt8](repeating: 1, count: 1024))), .refusal(refusal), .ping(0), .pong(0), .goodbye,
                .invite(Invite(id: Fixtures.invitation, timeoutMilliseconds: 1, context: [UInt8](repeating: 0, count: 8192))),
                .inviteAnswer(InviteAnswer(id: Fixtures.invitation, decision: .accepted(Fixtures.session))),
                .inviteWithdraw(InviteWithdraw(id: Fixtures.invitation, reason: .timedOut)), .sessionResume(Fixtures.session),
                .sessionEnd(Fixtures.session),
                .message(
                    Fixtures.message(
                        contentType: text(255), body: ByteBuffer(repeating: 0, count: WireLimits.messageBody),
                        inReplyTo: Fixtures.otherMessage)),
                .messageReceipts(.init(repeating: MessageReceipt(id: Fixtures.message, outcome: .read), count: 1024)),
                .resource(
                    .offer(
                        ResourceOffer(
                            session: Fixtures.session, id: id, kind: .file, size: 0, name: text(1024),
                            attributes: FileAttributes(seconds: 0, nanoseconds: 0)))),
                .resource(.accept(ResourceAccept(id: id, offset: 0, limit: 0))),
                .resource(.refuse(ResourceRefuse(id: id, refusal: refusal))),
                .resource(.chunk(ResourceChunk(id: id, offset: 0, data: ByteBuffer(repeating: 0, count: WireLimits.chunkData)))),
                .resource(.end(ResourceEnd(id: id, algorithm: .sha256, digest: [UInt8](repeating: 0, count: 64)))), .resource(.done(id)),
                .resource(.cancel(ResourceRefuse(id: id, refusal: refusal))),
                .resource(.have(ResourceHave(id: id, offset: 1, digest: [UInt8](repeating: 0, count: 16)))),
                .resource(.from(ResourceFrom(id: id, offset: 0))),
                .verification(VerificationFrame(id: Fixtures.verification, .begin(commitment: [UInt8](repeating: 0, count: 32)))),
                .verification(VerificationFrame(id: Fixtures.verification, .answer(nonce: [UInt8](repeating: 0, count: 32)))),
                .verification(VerificationFrame(id: Fixtures.verification, .reveal(nonce: [UInt8](repeating: 0, count: 32)))),
                .verification(VerificationFrame(id: Fixtures.verification, .end(.busy))),
                .dataTicket(DataTicket(transfer: TransferID(id), token: DataToken())), .dataUnavailable(TransferID(id)),
                .dataAttach(DataToken()),
            ] + (try self.longestOfStreams(refusal, name: text(255))) + (try self.longestOfGroups())
        #expect(Set(longest.map(\.type)).union([.hello]) == Set(FrameType.allCases))
        for frame in longest {
            let encoded = try frame.encoded()
            #expect(encoded.readableBytes - WireLimits.frameHeaderLength == frame.type.payloadLimit, "\(frame.type)")
            #expect(frame.type.payloadLimit <= WireLimits.framePayload)
            #expect(try decodeAll([encoded]) == [frame])
        }
    }

    private func longestOfGroups() throws -> [Frame] {
        let longest = try LongestGroup()
        let name = GroupName(group: longest.charter.id, digest: .digest(of: []))
        return [
            .invite(longest.invite), .inviteAnswer(GroupInviteAnswer(id: Fixtures.invitation, decision: .accepted(longest.ownSeat))),
            .inviteWithdraw(InviteWithdraw(id: Fixtures.invitation, reason: .timedOut)), .record(.seat(longest.seat), of: name.group),
            .names(.init(repeating: name, count: WireLimits.groupsPerFrame)),
            .index(name.group, .init(repeating: name.digest, count: WireLimits.groupIndex)),
        ].map { .group($0) }
    }

    private func longestOfStreams(_ refusal: Refusal, name: String) throws -> [Frame] {
        let id = Fixtures.stream
        return [
            .stream(.open(StreamOpen(session: Fixtures.session, id: id, name: try StreamName(name)))),
            .stream(.accept(StreamAccept(id: id, limit: 1))), .stream(.refuse(StreamRefuse(id: id, refusal: refusal))),
            .stream(.data(StreamData(id: id, data: ByteBuffer(repeating: 0, count: WireLimits.streamData)))),
            .stream(.end(StreamEnd(id: id, size: 1))), .stream(.done(id)), .stream(.abort(StreamRefuse(id: id, refusal: refusal))),
            .stream(.reroute(StreamReroute(id: id, offset: 1))), .stream(.rerouted(StreamReroute(id: id, offset: 1))),
        ]
    }

    @Test func textIsStrictUTF8() {
        let invalid: [[UInt8]] = [[0xFF], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xE2, 0x82], [0xF5, 0x80, 0x80, 0x80]]
        for text in invalid {
            let payload = ByteBuffer(bytes: [0, 1, 0, UInt8(text.count)] + text)
            #expect(throws: WireError.malformed(.refusal, field: "explanation")) { try FrameParser.parse(payload, of: .refusal) }
        }
    }
}
