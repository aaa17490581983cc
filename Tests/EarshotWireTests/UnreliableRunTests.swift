import EarshotWire
import NIOCore
import Testing

/// Unreliable messages that are taken together are what they would have been one by one.
@Suite struct UnreliableRunTests {
    private func message(
        _ number: UInt64, body: Int = 128, type: String = "text/plain", mode: MessageFrame.Mode = .unreliable
    ) -> MessageFrame {
        MessageFrame(
            session: SessionID(high: 1, low: 2), id: MessageID(high: 3, low: number), mode: mode, sequence: number,
            sentAtMilliseconds: Int64(number) - 5, contentType: type,
            body: ByteBuffer(bytes: (0..<body).map { UInt8(truncatingIfNeeded: $0 &+ Int(number)) }))
    }

    private func encoded(_ messages: [MessageFrame]) throws -> ByteBuffer {
        var bytes = ByteBuffer()
        for message in messages { try FrameEncoder.encode(.message(message), into: &bytes) }
        return bytes
    }

    private func decoder(_ bytes: ByteBuffer, phase: FrameDecoder.Phase = .proven) -> FrameDecoder {
        var decoder = FrameDecoder()
        decoder.phase = phase
        decoder.feed(bytes)
        return decoder
    }

    /// All that is in the bytes, with runs taken where there are any; and how many messages came in runs.
    private func all(_ decoder: inout FrameDecoder) throws(WireError) -> (frames: [Frame], inRuns: Int) {
        var frames: [Frame] = []
        var inRuns = 0
        while true {
            let run = decoder.takeUnreliable()
            inRuns += run.count
            frames += run.map(Frame.message)
            guard run.isEmpty else { continue }
            guard let frame = try decoder.next() else { return (frames, inRuns) }
            frames.append(frame)
        }
    }

    @Test func aRunIsItsMessages() throws {
        let messages = (0..<100).map { self.message(UInt64($0), body: Int($0)) }
        var decoder = self.decoder(try self.encoded(messages))
        #expect(decoder.takeUnreliable() == messages)
        #expect(decoder.isBetweenFrames)
    }

    @Test func shorterRunsAreLeftToTheDecoder() throws {
        let shortest = UInt64(FrameDecoder.shortestRun)
        var enough = self.decoder(try self.encoded((0..<shortest).map { self.message($0) }))
        #expect(enough.takeUnreliable().count == FrameDecoder.shortestRun)
        var few = self.decoder(try self.encoded((1..<shortest).map { self.message($0) }))
        #expect(few.takeUnreliable().isEmpty)
        #expect(try self.all(&few).frames.count == FrameDecoder.shortestRun - 1)
    }

    @Test func aRunEndsAtItsLimitOfBytes() throws {
        let eighth = FrameDecoder.runBytes / 8
        var fits = self.decoder(try self.encoded((0..<9).map { self.message($0, body: eighth) }))
        #expect(fits.takeUnreliable().count == 8)
        var long = self.decoder(try self.encoded((0..<8).map { self.message($0, body: $0 == 0 ? eighth + 1 : eighth) }))
        #expect(long.takeUnreliable().isEmpty)
        var body = self.decoder(try self.encoded((0..<100).map { self.message($0, body: 128) }))
        let run = body.takeUnreliable()
        #expect(run.allSatisfy { $0.body.storageCapacity <= 2 * FrameDecoder.runBytes })
    }

    @Test func whatIsNoneOfThemEndsARun() throws {
        let ten = (0..<10).map { self.message($0) }
        var reply = self.message(10)
        reply.inReplyTo = MessageID(high: 5, low: 6)
        for other in [self.message(10, type: "text/html"), self.message(10, mode: .reliable), self.message(10, mode: .resumed), reply] {
            var decoder = self.decoder(try self.encoded(ten + [other] + ten))
            #expect(decoder.takeUnreliable() == ten)
            #expect(try decoder.next() == .message(other))
            #expect(decoder.takeUnreliable() == ten)
        }
        var ping = try self.encoded(ten)
        try FrameEncoder.encode(.ping(1), into: &ping)
        var decoder = self.decoder(ping)
        #expect(decoder.takeUnreliable() == ten)
        #expect(decoder.takeUnreliable().isEmpty)
        #expect(try decoder.next() == .ping(1))
    }

    @Test func strangersSendNone() throws {
        let bytes = try self.encoded((0..<10).map { self.message($0) })
        var stranger = self.decoder(bytes, phase: .unproven)
        #expect(stranger.takeUnreliable().isEmpty)
    }

    @Test func whateverTheSplit() throws {
        let messages = (0..<20).map { self.message(UInt64($0), body: 20) }
        let bytes = try self.encoded(messages)
        for split in 0...bytes.readableBytes {
            var decoder = self.decoder(try #require(bytes.getSlice(at: 0, length: split)))
            var frames = try self.all(&decoder).frames
            decoder.feed(try #require(bytes.getSlice(at: split, length: bytes.readableBytes - split)))
            frames += try self.all(&decoder).frames
            #expect(frames == messages.map(Frame.message), "split at \(split)")
        }
    }

    /// One byte after the other is changed to several values: both ways give the same frames, or the same error.
    @Test func damageIsSeenTheSameWay() throws {
        let bytes = try self.encoded((0..<9).map { self.message($0, body: 3, type: "a/b") })
        for index in 0..<bytes.readableBytes {
            for change in [0x01, 0x02, 0x03, 0x80, 0xFF] as [UInt8] {
                var damaged = bytes
                damaged.setInteger((bytes.getInteger(at: index) as UInt8? ?? 0) ^ change, at: index)
                var together = self.decoder(damaged)
                var oneByOne = self.decoder(damaged)
                let one = Result { () throws(WireError) in try self.all(&together).frames }
                let other = Result { () throws(WireError) in
                    var frames: [Frame] = []
                    while let frame = try oneByOne.next() { frames.append(frame) }
                    return frames
                }
                #expect(one == other, "byte \(index) ^ \(change)")
                #expect(together.bufferedBytes == oneByOne.bufferedBytes)
            }
        }
    }

    @Test func aTemplateWritesWhatTheEncoderWrites() throws {
        for (type, count) in [("a", 0), ("text/plain; charset=utf-8", 128), (String(repeating: "x", count: 255), WireLimits.messageBody)] {
            let template = try MessageTemplate(self.message(7, body: 5, type: type))
            #expect(template.contentType == type)
            var message = self.message(7, body: 0, type: type)
            message.id = MessageID(high: .max, low: 77)
            message.body = ByteBuffer(repeating: 9, count: count)
            var buffer = ByteBuffer(string: "before")
            template.encode(message.id, message.body, into: &buffer)
            buffer.moveReaderIndex(forwardBy: 6)
            #expect(try buffer == self.encoded([message]))
        }
    }
}
