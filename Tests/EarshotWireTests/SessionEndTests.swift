import EarshotWire
import NIOCore
import Testing

/// The end of a session on a connection, sent or received, ends its transfers and streams in both directions.
@Suite struct SessionEndTests {
    private typealias Machine = ConnectionStateMachine

    /// Whether this side or the peer ends the session.
    enum Word: CaseIterable {
        case sent, received
    }

    private static let other = SessionID(high: 9, low: 9)
    private let end = Frame.sessionEnd(Fixtures.session)
    private let refusal = Refusal(code: .cancelled)

    private func fresh() -> Machine { Machine(localID: PeerID(subjectPublicKeyInfo: [1]), peerID: PeerID(subjectPublicKeyInfo: [2])) }

    private func offer(_ number: UInt64, size: UInt64 = 10, in session: SessionID = Fixtures.session) -> Frame {
        .resource(.offer(ResourceOffer(session: session, id: self.id(number), kind: .file, size: size, name: "a")))
    }

    private func open(_ number: UInt64, in session: SessionID = Fixtures.session) throws -> Frame {
        .stream(.open(StreamOpen(session: session, id: self.stream(number), name: try StreamName("a"))))
    }

    private func id(_ number: UInt64) -> ResourceID { ResourceID(high: 1, low: number) }
    private func stream(_ number: UInt64) -> StreamID { StreamID(high: 2, low: number) }
    private func accept(_ number: UInt64, _ offset: UInt64, _ limit: UInt64) -> Frame {
        .resource(.accept(ResourceAccept(id: self.id(number), offset: offset, limit: limit)))
    }
    private func chunk(_ number: UInt64, _ offset: UInt64, _ count: Int) -> Frame {
        .resource(.chunk(ResourceChunk(id: self.id(number), offset: offset, data: ByteBuffer(repeating: 1, count: count))))
    }
    private func resourceEnd(_ number: UInt64) -> Frame {
        .resource(.end(ResourceEnd(id: self.id(number), algorithm: .xxh3, digest: [1])))
    }
    private func cancel(_ number: UInt64) -> Frame { .resource(.cancel(ResourceRefuse(id: self.id(number), refusal: self.refusal))) }
    private func refuse(_ number: UInt64) -> Frame { .resource(.refuse(ResourceRefuse(id: self.id(number), refusal: self.refusal))) }
    private func abort(_ number: UInt64) -> Frame { .stream(.abort(StreamRefuse(id: self.stream(number), refusal: self.refusal))) }
    private func data(_ number: UInt64, _ count: Int) -> Frame {
        .stream(.data(StreamData(id: self.stream(number), data: ByteBuffer(repeating: 1, count: count))))
    }

    private func ends(_ machine: inout Machine, by word: Word, _ session: SessionID = Fixtures.session) {
        switch word {
        case .sent: #expect(machine.sent(.sessionEnd(session)) == .send)
        case .received: #expect(machine.received(.sessionEnd(session)) == .deliver)
        }
    }

    private func violates(_ frame: Frame, _ machine: inout Machine) {
        guard case .violation = machine.received(frame) else {
            Issue.record("\(frame.type) was taken")
            return
        }
    }

    // MARK: Places

    @Test(arguments: Word.allCases) func everyRoundHasAllPlaces(_ word: Word) throws {
        var machine = self.fresh()
        var number: UInt64 = 0
        for _ in 0..<20 {
            for _ in 0..<64 {
                number += 1
                #expect(machine.received(self.offer(number)) == .deliver)
                #expect(machine.received(try self.open(number)) == .deliver)
                #expect(machine.sent(self.offer(number + 100_000)) == .send)
                #expect(machine.sent(try self.open(number + 100_000)) == .send)
            }
            guard case .reply(.resource(.refuse(let refused))) = machine.received(self.offer(number + 50_000)) else {
                Issue.record("a 65th offer was taken")
                return
            }
            #expect(refused.refusal.code == .busy)
            #expect(machine.openTransfers == (64, 64) && machine.openStreams == (64, 64))
            self.ends(&machine, by: word)
            #expect(machine.openTransfers == (0, 0) && machine.openStreams == (0, 0))
            number += 60_000
        }
    }

    @Test(arguments: Word.allCases) func onlyThatSessionsEnd(_ word: Word) throws {
        var machine = self.fresh()
        #expect(machine.received(self.offer(1)) == .deliver)
        #expect(machine.received(self.offer(2, in: Self.other)) == .deliver)
        #expect(machine.sent(try self.open(3)) == .send)
        #expect(machine.sent(try self.open(4, in: Self.other)) == .send)
        self.ends(&machine, by: word)
        #expect(machine.openTransfers == (1, 0) && machine.openStreams == (0, 1))
        #expect(machine.sent(self.accept(2, 0, 10)) == .send)
        #expect(machine.sent(self.accept(1, 0, 10)) == .drop)
        self.ends(&machine, by: word, Self.other)
        #expect(machine.openTransfers == (0, 0) && machine.openStreams == (0, 0))
    }

    @Test func onesThatHaveEndedBeforeAreNotEndedAgain() throws {
        var machine = self.fresh()
        #expect(machine.received(self.offer(1)) == .deliver)
        #expect(machine.sent(self.refuse(1)) == .send)
        #expect(machine.received(self.offer(2)) == .deliver)
        #expect(machine.received(self.cancel(2)) == .deliver)
        #expect(machine.sent(self.offer(3)) == .send)
        #expect(machine.received(self.refuse(3)) == .deliver)
        #expect(machine.sent(try self.open(4)) == .send)
        #expect(machine.sent(self.abort(4)) == .send)
        self.ends(&machine, by: .received)
        self.ends(&machine, by: .sent)
        #expect(machine.openTransfers == (0, 0) && machine.openStreams == (0, 0))
        self.violates(self.cancel(2), &machine)
    }

    /// The session that a late acceptance has made on the other side.
    @Test func theAnswerToALateAcceptanceEndsThatSession() {
        var machine = self.fresh()
        let invitation = InvitationID(high: 1, low: 1)
        #expect(machine.sent(.invite(Invite(id: invitation, timeoutMilliseconds: 1, context: []))) == .send)
        #expect(machine.sent(.inviteWithdraw(InviteWithdraw(id: invitation, reason: .withdrawn))) == .send)
        #expect(machine.received(self.offer(1)) == .deliver)
        let answer = Frame.inviteAnswer(InviteAnswer(id: invitation, decision: .accepted(Fixtures.session)))
        #expect(machine.received(answer) == .reply(self.end))
        #expect(machine.openTransfers == (0, 0))
    }

    // MARK: Frames in flight

    @Test(arguments: Word.allCases) func lateFramesOfThePeersTransfers(_ word: Word) {
        var machine = self.fresh()
        for number in 1...3 as ClosedRange<UInt64> { #expect(machine.received(self.offer(number)) == .deliver) }
        #expect(machine.sent(self.accept(1, 0, 10)) == .send)
        #expect(machine.received(self.chunk(1, 0, 4)) == .deliver)
        #expect(machine.sent(.resource(.have(ResourceHave(id: self.id(2), offset: 5, digest: [1])))) == .send)
        self.ends(&machine, by: word)
        // The machine ignores chunks within the window, one end, and one cancel per transfer.
        #expect(machine.received(self.chunk(1, 4, 6)) == .ignore)
        #expect(machine.received(self.resourceEnd(1)) == .ignore)
        #expect(machine.received(self.cancel(1)) == .ignore)
        #expect(machine.received(.resource(.from(ResourceFrom(id: self.id(2), offset: 5)))) == .ignore)
        #expect(machine.received(self.cancel(3)) == .ignore)
        for frame in [self.refuse(1), .resource(.done(self.id(1))), self.cancel(2), self.accept(3, 0, 1)] {
            #expect(machine.sent(frame) == .drop, "\(frame.type)")
        }
        for frame in [self.chunk(1, 10, 1), self.resourceEnd(1), self.cancel(1), self.cancel(3), self.offer(1)] {
            var copy = machine
            self.violates(frame, &copy)
        }
    }

    @Test func aChunkBeyondTheWindowIsOneAfterTheEndToo() {
        var machine = self.fresh()
        #expect(machine.received(self.offer(1)) == .deliver)
        #expect(machine.sent(self.accept(1, 0, 4)) == .send)
        self.ends(&machine, by: .sent)
        self.violates(self.chunk(1, 0, 5), &machine)
    }

    @Test(arguments: Word.allCases) func lateFramesOfThisSidesTransfers(_ word: Word) {
        var machine = self.fresh()
        for number in 1...2 as ClosedRange<UInt64> { #expect(machine.sent(self.offer(number)) == .send) }
        #expect(machine.received(self.accept(1, 0, 4)) == .deliver)
        self.ends(&machine, by: word)
        #expect(machine.sent(self.chunk(1, 0, 4)) == .drop)
        #expect(machine.sent(self.cancel(1)) == .drop)
        #expect(machine.received(self.accept(1, 4, 8)) == .ignore)
        #expect(machine.received(.resource(.have(ResourceHave(id: self.id(2), offset: 5, digest: [1])))) == .ignore)
        #expect(machine.received(self.refuse(1)) == .ignore)
        #expect(machine.received(.resource(.done(self.id(2)))) == .ignore)
        self.violates(self.refuse(1), &machine)
    }

    @Test(arguments: Word.allCases) func lateFramesOfStreams(_ word: Word) throws {
        var machine = self.fresh()
        #expect(machine.received(try self.open(1)) == .deliver)
        #expect(machine.sent(.stream(.accept(StreamAccept(id: self.stream(1), limit: 10)))) == .send)
        #expect(machine.received(self.data(1, 4)) == .deliver)
        #expect(machine.sent(try self.open(2)) == .send)
        self.ends(&machine, by: word)
        #expect(machine.sent(self.abort(1)) == .drop && machine.sent(self.abort(2)) == .drop)
        #expect(machine.received(self.data(1, 6)) == .ignore)
        #expect(machine.received(.stream(.end(StreamEnd(id: self.stream(1), size: 10)))) == .ignore)
        // The frames that earlier versions send for each stream.
        #expect(machine.received(self.abort(1)) == .ignore)
        #expect(machine.received(.stream(.accept(StreamAccept(id: self.stream(2), limit: 4)))) == .ignore)
        #expect(machine.received(self.abort(2)) == .ignore)
        self.violates(self.data(1, 1), &machine)
    }
}
