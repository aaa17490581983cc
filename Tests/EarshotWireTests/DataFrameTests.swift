import EarshotWire
import NIOCore
import Testing

@Suite struct DataFrameTests {
    private func header(_ length: UInt32, _ type: UInt8) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: length >> $0) } + [type]
    }

    /// Decodes the pieces in order. Returns all bytes, and whether the end was among the pieces.
    private func decode(_ pieces: [[UInt8]]) throws(WireError) -> (bytes: [UInt8], hasEnded: Bool) {
        var decoder = DataFrameDecoder()
        var (bytes, hasEnded) = ([UInt8](), false)
        for piece in pieces {
            decoder.feed(ByteBuffer(bytes: piece))
            while let next = try decoder.next() {
                switch next {
                case .bytes(let buffer): bytes += buffer.readableBytesView
                case .end: hasEnded = true
                }
            }
        }
        return (bytes, hasEnded)
    }

    @Test func splitAtEveryByte() throws {
        var whole = ByteBuffer()
        DataFrame.data(count: 5).encode(into: &whole)
        whole.writeString("hello")
        DataFrame.data(count: 1).encode(into: &whole)
        whole.writeString("!")
        DataFrame.end.encode(into: &whole)
        let bytes = Array(whole.readableBytesView)
        for split in 0...bytes.count {
            let (content, hasEnded) = try self.decode([Array(bytes[..<split]), Array(bytes[split...])])
            #expect(content == Array("hello!".utf8))
            #expect(hasEnded)
        }
        #expect(try self.decode(bytes.map { [$0] }).bytes == Array("hello!".utf8))
        #expect(try !self.decode([bytes.dropLast()]).hasEnded)
    }

    @Test func lengthsAtTheirEdges() {
        let limit = UInt32(WireLimits.dataFrame)
        #expect(throws: Never.self) { try self.decode([self.header(limit, 0x59)]) }
        for length in [0, limit + 1, 1 << 31, .max] {
            #expect(throws: WireError.tooLong(type: 0x59, length: length, limit: Int(limit))) {
                try self.decode([self.header(length, 0x59)])
            }
        }
        #expect(throws: WireError.tooLong(type: 0x5A, length: 1, limit: 0)) { try self.decode([self.header(1, 0x5A)]) }
        for type in [UInt8(0x03), 0x43, 0x58, 0x80] {
            #expect(throws: WireError.unknownType(type)) { try self.decode([self.header(1, type)]) }
        }
    }

    @Test func nothingFollowsTheEnd() {
        #expect(throws: WireError.afterDataEnd) { try self.decode([self.header(0, 0x5A) + [0]]) }
        #expect(throws: WireError.afterDataEnd) { try self.decode([self.header(0, 0x5A), self.header(0, 0x5A)]) }
    }

    @Test func bytesThatATakerReadsByItself() throws {
        var decoder = DataFrameDecoder()
        decoder.feed(ByteBuffer(bytes: self.header(10, 0x59) + [1, 2]))
        #expect(try decoder.next() == .bytes(ByteBuffer(bytes: [1, 2])))
        #expect(decoder.remainingInFrame == 8)
        decoder.skip(5)
        #expect(decoder.remainingInFrame == 3)
        decoder.skip(3)
        #expect(decoder.remainingInFrame == 0)
        #expect(decoder.missingInHeader == WireLimits.frameHeaderLength)
    }

    // MARK: On the control connection

    private typealias Machine = ConnectionStateMachine
    private let id = ResourceID(high: 1, low: 1)
    private func accept(_ offset: UInt64, _ limit: UInt64) -> Frame {
        .resource(.accept(ResourceAccept(id: self.id, offset: offset, limit: limit)))
    }
    private var end: Frame { .resource(.end(ResourceEnd(id: self.id, algorithm: .xxh3, digest: [1]))) }
    private func chunk(_ offset: UInt64) -> Frame {
        .resource(.chunk(ResourceChunk(id: self.id, offset: offset, data: ByteBuffer(bytes: [1]))))
    }

    /// Sender and receiver of a transfer of 10 bytes, and what the receiver has accepted of it, one after another.
    private func machines(_ accepts: (UInt64, UInt64)...) -> (sender: Machine, receiver: Machine) {
        var sender = Machine(localID: PeerID(subjectPublicKeyInfo: [1]), peerID: PeerID(subjectPublicKeyInfo: [2]))
        var receiver = Machine(localID: PeerID(subjectPublicKeyInfo: [2]), peerID: PeerID(subjectPublicKeyInfo: [1]))
        let offer = Frame.resource(.offer(ResourceOffer(session: Fixtures.session, id: self.id, kind: .file, size: 10, name: "a")))
        #expect(sender.sent(offer) == .send)
        #expect(receiver.received(offer) == .deliver)
        for (offset, limit) in accepts {
            #expect(receiver.sent(self.accept(offset, limit)) == .send)
            #expect(sender.received(self.accept(offset, limit)) == .deliver)
        }
        return (sender, receiver)
    }

    private func isViolation(_ action: Machine.ReceivedAction) -> Bool {
        if case .violation = action { true } else { false }
    }

    @Test func elsewhereThereAreNoChunksAndNoEnd() {
        for frame in [self.chunk(0), self.end, self.chunk(3)] {
            var (sender, receiver) = self.machines((0, 0))
            #expect(sender.sent(frame) == .drop)
            #expect(self.isViolation(receiver.received(frame)))
        }
        var (sender, receiver) = self.machines((0, 0), (4, 4))
        // Not back behind what was said.
        #expect(receiver.sent(self.accept(3, 3)) == .drop)
        #expect(self.isViolation(sender.received(self.accept(3, 3))))
    }

    @Test func theEndFollowsTheAcceptForTheSize() {
        var (sender, receiver) = self.machines((0, 0), (4, 4), (10, 10))
        #expect(sender.sent(self.end) == .send)
        #expect(receiver.received(self.end) == .deliver)
        #expect(receiver.sent(.resource(.done(self.id))) == .send)
        #expect(sender.received(.resource(.done(self.id))) == .deliver)
    }

    @Test func chunksGoOnWhereTheDataConnectionsLeftOff() {
        var (sender, receiver) = self.machines((0, 0), (9, 10))
        #expect(sender.sent(self.chunk(0)) == .drop)
        #expect(sender.sent(self.chunk(9)) == .send)
        #expect(receiver.received(self.chunk(9)) == .deliver)
        #expect(receiver.sent(self.accept(10, 10)) == .send)
        #expect(sender.received(self.accept(10, 10)) == .deliver)
        #expect(sender.sent(self.end) == .send)
        #expect(receiver.received(self.end) == .deliver)
        // And not back.
        (sender, receiver) = self.machines((0, 0), (5, 7))
        #expect(receiver.sent(self.accept(5, 5)) == .drop)
        #expect(self.isViolation(sender.received(self.accept(5, 5))))
    }

    @Test func eitherSideEndsIt() {
        let refusal = ResourceRefuse(id: self.id, refusal: Refusal(code: .cancelled))
        var (sender, receiver) = self.machines((0, 0))
        #expect(receiver.sent(.resource(.refuse(refusal))) == .send)
        #expect(self.isViolation(receiver.received(self.chunk(0))))
        #expect(sender.received(.resource(.refuse(refusal))) == .deliver)
        (sender, receiver) = self.machines((0, 0))
        #expect(sender.sent(.resource(.cancel(refusal))) == .send)
        #expect(receiver.sent(self.accept(2, 2)) == .send)
        #expect(sender.received(self.accept(2, 2)) == .ignore)
        #expect(receiver.received(.resource(.cancel(refusal))) == .deliver)
    }

    @Test func anAttachIsNothingForAControlConnection() {
        var (sender, receiver) = self.machines()
        #expect(sender.sent(.dataAttach(DataToken())) == .drop)
        #expect(self.isViolation(receiver.received(.dataAttach(DataToken()))))
        let ticket = Frame.dataTicket(DataTicket(transfer: TransferID(self.id), token: DataToken()))
        #expect(sender.sent(ticket) == .send)
        #expect(sender.received(ticket) == .deliver)
    }
}
