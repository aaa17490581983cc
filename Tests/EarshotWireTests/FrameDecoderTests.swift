import EarshotWire
import NIOCore
import Testing

@Suite struct FrameDecoderTests {
    /// One piece per given range of the bytes.
    private func pieces(of bytes: ByteBuffer, splitAt index: Int) -> [ByteBuffer] {
        let all = Array(bytes.readableBytesView)
        return [ByteBuffer(bytes: all[..<index]), ByteBuffer(bytes: all[index...])]
    }

    /// Chunks that came in pieces, put together again.
    private func joined(_ frames: [Frame]) -> [Frame] {
        var result: [Frame] = []
        for frame in frames {
            if case .stream(.data(let piece)) = frame, case .stream(.data(var whole))? = result.last, whole.id == piece.id {
                whole.data.writeImmutableBuffer(piece.data)
                result[result.count - 1] = .stream(.data(whole))
                continue
            }
            guard case .resource(.chunk(let piece)) = frame, case .resource(.chunk(var whole))? = result.last, whole.id == piece.id,
                whole.offset + UInt64(whole.data.readableBytes) == piece.offset
            else {
                result.append(frame)
                continue
            }
            whole.data.writeImmutableBuffer(piece.data)
            result[result.count - 1] = .resource(.chunk(whole))
        }
        return result
    }

    private func stream() throws -> (frames: [Frame], bytes: ByteBuffer) {
        let frames = try Fixtures.frames().map(\.frame)
        var bytes = ByteBuffer()
        for frame in frames {
            try FrameEncoder.encode(frame, into: &bytes)
            // Unknown and skippable, one of them empty.
            bytes.writeBytes([0, 0, 0, 3, 0x80, 1, 2, 3, 0, 0, 0, 0, 0xFF])
        }
        return (frames, bytes)
    }

    @Test func decodesWhateverTheSplit() throws {
        let (frames, bytes) = try self.stream()
        for index in 0...bytes.readableBytes {
            #expect(self.joined(try decodeAll(self.pieces(of: bytes, splitAt: index))) == frames, "split at \(index)")
        }
    }

    @Test func decodesByteByByte() throws {
        let (frames, bytes) = try self.stream()
        #expect(self.joined(try decodeAll(bytes.readableBytesView.map { ByteBuffer(bytes: [$0]) })) == frames)
    }

    @Test func decodesWhatIsFedWithoutDraining() throws {
        let (frames, bytes) = try self.stream()
        var decoder = FrameDecoder()
        decoder.phase = .proven
        for byte in bytes.readableBytesView { decoder.feed(ByteBuffer(bytes: [byte])) }
        #expect(decoder.bufferedBytes == bytes.readableBytes)
        var decoded: [Frame] = []
        while let frame = try decoder.next() { decoded.append(frame) }
        #expect(decoded == frames)
        #expect(decoder.bufferedBytes == 0)
    }

    @Test func sharesTheStorageOfWhatWasFed() throws {
        let body = ByteBuffer(repeating: 0x42, count: 100_000)
        var bytes = try Frame.message(Fixtures.message(body: body)).encoded()
        try FrameEncoder.encode(.resource(.chunk(ResourceChunk(id: Fixtures.resource, offset: 0, data: body))), into: &bytes)
        let range = bytes.withUnsafeReadableBytes { Self.addresses(of: $0) }
        var decoder = FrameDecoder()
        decoder.phase = .proven
        decoder.feed(bytes)
        guard case .message(let message)? = try decoder.next(), case .resource(.chunk(let chunk))? = try decoder.next() else {
            Issue.record("expected a message and a chunk")
            return
        }
        for part in [message.body, chunk.data] {
            #expect(part == body)
            #expect(range.contains(part.withUnsafeReadableBytes { Self.addresses(of: $0).lowerBound }))
        }
    }

    private static func addresses(of bytes: UnsafeRawBufferPointer) -> Range<UInt> {
        let start = UInt(bitPattern: bytes.baseAddress)
        return start..<start + UInt(bytes.count)
    }

    @Test func streamDataComesAsItArrives() throws {
        let frame = Frame.stream(.data(StreamData(id: Fixtures.stream, data: ByteBuffer(bytes: [1, 2, 3, 4]))))
        let bytes = Array(try frame.encoded().readableBytesView)
        let piece = { (data: [UInt8]) in Frame.stream(.data(StreamData(id: Fixtures.stream, data: ByteBuffer(bytes: data)))) }
        for cut in bytes.count - 3..<bytes.count {
            let frames = try decodeAll([ByteBuffer(bytes: bytes[..<cut]), ByteBuffer(bytes: bytes[cut...])])
            let sent = 4 - (bytes.count - cut)
            #expect(frames == [piece(Array([1, 2, 3, 4][..<sent])), piece(Array([1, 2, 3, 4][sent...]))])
        }
    }

    @Test func chunkDataComesAsItArrives() throws {
        let chunk = ResourceChunk(id: Fixtures.resource, offset: 100, data: ByteBuffer(bytes: [1, 2, 3, 4]))
        let bytes = Array(try Frame.resource(.chunk(chunk)).encoded().readableBytesView)
        var decoder = FrameDecoder()
        decoder.phase = .proven
        decoder.feed(ByteBuffer(bytes: bytes.dropLast(3)))
        #expect(try decoder.next() == .resource(.chunk(ResourceChunk(id: chunk.id, offset: 100, data: ByteBuffer(bytes: [1])))))
        #expect(try decoder.next() == nil)
        #expect(!decoder.isBetweenFrames)
        decoder.feed(ByteBuffer(bytes: bytes.suffix(3)))
        #expect(try decoder.next() == .resource(.chunk(ResourceChunk(id: chunk.id, offset: 101, data: ByteBuffer(bytes: [2, 3, 4])))))
        #expect(try decoder.next() == nil)
        #expect(decoder.isBetweenFrames)
    }

    @Test func aChunksLengthsMustAgree() throws {
        let chunk = ResourceChunk(id: Fixtures.resource, offset: 0, data: ByteBuffer(bytes: [1, 2, 3, 4]))
        var bytes = try Frame.resource(.chunk(chunk)).encoded()
        bytes.setInteger(UInt32(3), at: WireLimits.frameHeaderLength + 24)
        #expect(throws: WireError.malformed(.resourceChunk, field: "data")) { try decodeAll([bytes]) }
        bytes.setInteger(UInt32(28), at: 0)
        #expect(throws: WireError.malformed(.resourceChunk, field: "data")) { try decodeAll([bytes]) }
    }

    private func header(_ type: UInt8, _ length: UInt32) -> ByteBuffer {
        var buffer = ByteBuffer(integer: length)
        buffer.writeInteger(type)
        return buffer
    }

    @Test(
        arguments: [
            (0x01, FrameDecoder.Phase.unproven, WireLimits.helloPayload), (0x80, .unproven, WireLimits.unprovenPayload),
            (0x30, .unproven, WireLimits.unprovenPayload), (0x02, .unproven, FrameType.proof.payloadLimit),
            (0x80, .proven, WireLimits.framePayload), (0x30, .proven, FrameType.message.payloadLimit),
            (0x43, .proven, FrameType.resourceChunk.payloadLimit), (0x10, .proven, 8), (0x12, .proven, 0),
        ] as [(UInt8, FrameDecoder.Phase, Int)])
    func refusesFromTheHeader(type: UInt8, phase: FrameDecoder.Phase, limit: Int) throws {
        var decoder = FrameDecoder()
        decoder.phase = phase
        decoder.feed(self.header(type, UInt32(limit)))
        if type != FrameType.goodbye.rawValue {
            #expect(try decoder.next() == nil)
        } else {
            #expect(try decoder.next() == .goodbye)
        }
        for length in [UInt32(limit) + 1, UInt32(Int32.max), UInt32(Int32.max) + 1, UInt32.max] {
            let error = WireError.tooLong(type: type, length: length, limit: limit)
            #expect(throws: error) { try decodeAll([self.header(type, length)], phase: phase) }
            #expect(error.refusal.code == .protocolViolation)
        }
    }

    @Test func theLimitIsThatOfThePhaseInWhichAHeaderIsRead() throws {
        let invite = Frame.invite(Invite(id: Fixtures.invitation, timeoutMilliseconds: 1, context: [UInt8](repeating: 0, count: 4096)))
        var bytes = try Frame.proof(Proof(signature: [1])).encoded()
        try FrameEncoder.encode(invite, into: &bytes)
        var decoder = FrameDecoder()
        decoder.feed(bytes)
        #expect(try decoder.next() == .proof(Proof(signature: [1])))
        decoder.phase = .proven
        #expect(try decoder.next() == invite)
    }

    @Test func anUnknownTypeBelow80IsRefused() throws {
        let known = Set(FrameType.allCases.map(\.rawValue))
        for type in UInt8.min..<0x80 where !known.contains(type) {
            #expect(throws: WireError.unknownType(type)) { try decodeAll([self.header(type, 0)]) }
        }
        for type in UInt8(0x80)...UInt8.max {
            #expect(!known.contains(type))
            #expect(try decodeAll([self.header(type, 0)]) == [])
        }
    }

    @Test func anErrorStays() throws {
        var decoder = FrameDecoder()
        decoder.feed(self.header(0x7F, 0))
        #expect(throws: WireError.unknownType(0x7F)) { try decoder.next() }
        decoder.feed(try Frame.ping(1).encoded())
        #expect(throws: WireError.unknownType(0x7F)) { try decoder.next() }
        #expect(!decoder.isBetweenFrames)
    }

    @Test func headAndBulkTogetherAreTheFrame() throws {
        for named in try Fixtures.frames() {
            var split = ByteBuffer()
            let bulk = try FrameEncoder.encodeHead(named.frame, into: &split)
            switch named.frame.type {
            case .message, .resourceChunk, .streamData: #expect(bulk != nil)
            default: #expect(bulk == nil)
            }
            if let bulk { split.writeImmutableBuffer(bulk) }
            #expect(split == (try named.frame.encoded()))
        }
    }

    @Test func thePreambleMayComeInPieces() throws {
        let bytes = WireLimits.preamble + [0xAA, 0xBB]
        #expect(WireLimits.preamble.first != WireLimits.tlsHandshakeByte)
        for index in 0...bytes.count {
            var decoder = PreambleDecoder()
            var first = ByteBuffer(bytes: bytes[..<index])
            #expect(try decoder.consume(&first) == (index >= WireLimits.preamble.count))
            var second = ByteBuffer(bytes: Array(first.readableBytesView) + bytes[index...])
            #expect(try decoder.consume(&second))
            #expect(Array(second.readableBytesView) == [0xAA, 0xBB])
        }
    }

    @Test func aForeignFirstByteIsRefusedAtOnce() {
        for index in WireLimits.preamble.indices {
            var bytes = WireLimits.preamble
            bytes[index] ^= 0x20
            var buffer = ByteBuffer(bytes: bytes[...index])
            var decoder = PreambleDecoder()
            #expect(throws: WireError.foreignPreamble) { try decoder.consume(&buffer) }
        }
    }

    /// Any bytes at all give frames that encode to the same bytes, or a typed error; never a crash.
    @Test func randomBytesNeverCrash() throws {
        var generator = SeededGenerator(state: 0x5EED)
        let seeds = try Fixtures.frames().map { Array(try $0.frame.encoded().readableBytesView) }
        var decodedSomething = 0
        for _ in 0..<20_000 {
            var bytes = seeds[Int(generator.next() % UInt64(seeds.count))]
            for _ in 0...(generator.next() % 3) {
                bytes[Int(generator.next() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: generator.next())
            }
            guard let frames = try? decodeAll([ByteBuffer(bytes: bytes)]) else { continue }
            var again = ByteBuffer()
            for frame in frames { try FrameEncoder.encode(frame, into: &again) }
            if bytes.prefix(5) == seeds.first(where: { $0.prefix(5) == bytes.prefix(5) })?.prefix(5), !frames.isEmpty {
                decodedSomething += 1
                #expect(Array(again.readableBytesView) == bytes)
            }
        }
        #expect(decodedSomething > 1000)
    }
}

/// Steele, Lea and Flood's SplitMix64: the same numbers on every run.
struct SeededGenerator: RandomNumberGenerator {
    var state: UInt64
    mutating func next() -> UInt64 {
        self.state &+= 0x9E37_79B9_7F4A_7C15
        var value = self.state
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }
}
