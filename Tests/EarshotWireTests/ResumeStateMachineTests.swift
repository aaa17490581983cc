import EarshotWire
import NIOCore
import Testing

/// Resuming a transfer that an earlier connection left unfinished.
@Suite struct ResumeStateMachineTests {
    private typealias Machine = ConnectionStateMachine
    private let fresh = Machine(localID: PeerID(subjectPublicKeyInfo: [1]), peerID: PeerID(subjectPublicKeyInfo: [2]))
    private let id = ResourceID(high: 1, low: 0)

    private var offer: Frame { .resource(.offer(ResourceOffer(session: Fixtures.session, id: self.id, kind: .file, size: 10, name: "a"))) }
    private func have(_ offset: UInt64) -> Frame {
        .resource(.have(ResourceHave(id: self.id, offset: offset, digest: [UInt8](repeating: 7, count: 16))))
    }
    private func from(_ offset: UInt64) -> Frame { .resource(.from(ResourceFrom(id: self.id, offset: offset))) }
    private func accept(_ offset: UInt64, _ limit: UInt64) -> Frame {
        .resource(.accept(ResourceAccept(id: self.id, offset: offset, limit: limit)))
    }
    private func chunk(_ offset: UInt64, _ count: Int) -> Frame {
        .resource(.chunk(ResourceChunk(id: self.id, offset: offset, data: ByteBuffer(repeating: 1, count: count))))
    }
    private var refuse: Frame { .resource(.refuse(ResourceRefuse(id: self.id, refusal: Refusal(code: .declined)))) }
    private var cancel: Frame { .resource(.cancel(ResourceRefuse(id: self.id, refusal: Refusal(code: .cancelled)))) }
    private var end: Frame { .resource(.end(ResourceEnd(id: self.id, algorithm: .xxh3, digest: [1]))) }
    private var done: Frame { .resource(.done(self.id)) }

    private enum Event {
        case sent(Frame)
        case received(Frame)
    }

    private func after(_ events: Event...) -> Machine {
        var machine = self.fresh
        for event in events {
            switch event {
            case .sent(let frame): #expect(machine.sent(frame) == .send)
            case .received(let frame): #expect(machine.received(frame) == .deliver)
            }
        }
        return machine
    }

    private func refusesAsViolation(_ frame: Frame, in machine: Machine, sourceLocation: SourceLocation = #_sourceLocation) {
        var machine = machine
        guard case .violation(let error) = machine.received(frame) else {
            Issue.record("accepted", sourceLocation: sourceLocation)
            return
        }
        #expect(error.code == .protocolViolation, sourceLocation: sourceLocation)
    }

    private func drops(_ frame: Frame, in machine: Machine, sourceLocation: SourceLocation = #_sourceLocation) {
        var machine = machine
        #expect(machine.sent(frame) == .drop, sourceLocation: sourceLocation)
    }

    @Test func theReceiverAsksAndGoesOn() {
        let compared = self.after(.received(self.offer), .sent(self.have(6)), .received(self.from(6)))
        self.drops(self.accept(0, 10), in: compared)
        self.drops(self.accept(6, 11), in: compared)
        self.drops(self.done, in: compared)
        self.drops(self.have(6), in: compared)
        var machine = compared
        #expect(machine.sent(self.accept(6, 10)) == .send)
        self.refusesAsViolation(self.chunk(0, 1), in: machine)
        self.refusesAsViolation(self.from(6), in: machine)
        #expect(machine.received(self.chunk(6, 4)) == .deliver)
        #expect(machine.received(self.end) == .deliver)
        #expect(machine.sent(self.done) == .send)
        #expect(machine.openTransfers == (0, 0))
    }

    @Test func theReceiverAsksAndBeginsAnew() {
        var machine = self.after(.received(self.offer), .sent(self.have(10)), .received(self.from(0)))
        self.drops(self.accept(10, 10), in: machine)
        #expect(machine.sent(self.accept(0, 10)) == .send)
    }

    @Test func aHaveIsOfWhatWasOffered() {
        let offered = self.after(.received(self.offer))
        for offset in [0, 11, .max] as [UInt64] { self.drops(self.have(offset), in: offered) }
        self.drops(self.have(1), in: self.fresh)
        self.drops(self.have(1), in: self.after(.received(self.offer), .sent(self.accept(0, 10))))
        let asking = self.after(.sent(self.offer))
        for offset in [0, 11, .max] as [UInt64] { self.refusesAsViolation(self.have(offset), in: asking) }
        self.refusesAsViolation(self.have(1), in: self.fresh)
        self.refusesAsViolation(self.have(1), in: self.after(.sent(self.offer), .received(self.have(1))))
        self.refusesAsViolation(self.have(1), in: self.after(.sent(self.offer), .received(self.accept(0, 10))))
    }

    @Test func aFromAnswersAHave() {
        self.refusesAsViolation(self.from(0), in: self.fresh)
        self.refusesAsViolation(self.from(0), in: self.after(.received(self.offer)))
        self.refusesAsViolation(self.from(5), in: self.after(.received(self.offer), .sent(self.have(6))))
        self.drops(self.from(0), in: self.after(.sent(self.offer)))
        self.drops(self.from(5), in: self.after(.sent(self.offer), .received(self.have(6))))
    }

    @Test func nothingMovesWhileTheyCompare() {
        let comparing = self.after(.received(self.offer), .sent(self.have(6)))
        for frame in [self.chunk(6, 1), self.end] { self.refusesAsViolation(frame, in: comparing) }
        for frame in [self.accept(6, 10), self.done] { self.drops(frame, in: comparing) }
        let compared = self.after(.received(self.offer), .sent(self.have(6)), .received(self.from(6)))
        for frame in [self.chunk(6, 1), self.end] { self.refusesAsViolation(frame, in: compared) }
        let asked = self.after(.sent(self.offer), .received(self.have(6)))
        for frame in [self.accept(6, 10), self.done] { self.refusesAsViolation(frame, in: asked) }
        let resuming = self.after(.sent(self.offer), .received(self.have(6)), .sent(self.from(6)))
        for frame in [self.accept(0, 10), self.accept(5, 10), self.accept(6, 11), self.done] {
            self.refusesAsViolation(frame, in: resuming)
        }
        for frame in [self.chunk(6, 1), self.end] { self.drops(frame, in: resuming) }
    }

    @Test func theSenderGoesOn() {
        var machine = self.after(.sent(self.offer), .received(self.have(6)), .sent(self.from(6)), .received(self.accept(6, 10)))
        #expect(machine.sent(self.chunk(0, 1)) == .drop)
        #expect(machine.sent(self.chunk(6, 4)) == .send)
        #expect(machine.sent(self.end) == .send)
        #expect(machine.received(self.done) == .deliver)
    }

    @Test func eitherSideMayEndItMeanwhile() {
        var ours = self.after(.received(self.offer), .sent(self.have(6)), .sent(self.refuse))
        #expect(ours.openTransfers == (0, 0))
        self.refusesAsViolation(self.from(5), in: ours)
        #expect(ours.received(self.from(6)) == .ignore)
        self.refusesAsViolation(self.from(6), in: ours)
        #expect(ours.received(self.cancel) == .ignore)
        var decided = self.after(.received(self.offer), .sent(self.have(6)), .received(self.from(6)), .sent(self.cancel))
        self.refusesAsViolation(self.chunk(6, 1), in: decided)
        #expect(decided.received(self.cancel) == .ignore)
        for machine in [
            self.after(.received(self.offer), .sent(self.have(6))),
            self.after(.received(self.offer), .sent(self.have(6)), .received(self.from(6))),
        ] {
            var machine = machine
            #expect(machine.received(self.cancel) == .deliver)
            #expect(machine.openTransfers == (0, 0))
            self.drops(self.accept(6, 10), in: machine)
        }
        var theirs = self.after(.sent(self.offer), .sent(self.cancel))
        #expect(theirs.received(self.have(6)) == .ignore)
        #expect(theirs.received(self.refuse) == .ignore)
        var refused = self.after(.sent(self.offer), .received(self.have(6)))
        #expect(refused.received(self.refuse) == .deliver)
        #expect(refused.sent(self.from(6)) == .drop)
    }
}
