import EarshotWire
import Testing

@Suite struct VerificationStateMachineTests {
    private typealias Machine = VerificationStateMachine

    private static let low = PeerID(subjectPublicKeyInfo: [1])
    private static let high = PeerID(subjectPublicKeyInfo: [2])
    private static let transcript = Transcript(initiatorHello: [1], responderHello: [2], transport: .tls)
    private static let nonce = [UInt8](repeating: 7, count: 32)
    private static let otherNonce = [UInt8](repeating: 9, count: 32)

    private func id(_ number: UInt64) -> VerificationID { VerificationID(high: 0, low: number) }

    /// Two machines of one connection, the lower peer id's first.
    private func sides(_ others: Transcript? = nil) -> (low: Machine, high: Machine) {
        let (one, other) = Self.low < Self.high ? (Self.low, Self.high) : (Self.high, Self.low)
        return (
            Machine(localID: one, peerID: other, transcript: Self.transcript),
            Machine(localID: other, peerID: one, transcript: others ?? Self.transcript)
        )
    }

    private func frame(_ action: Machine.StartAction) throws -> VerificationFrame {
        guard case .send(let frame) = action else {
            Issue.record("\(action)")
            throw WireError.misuse
        }
        return frame
    }

    /// Both persons ask, the lower side's first: what each is shown.
    private func compare(_ sides: (low: Machine, high: Machine)) throws -> (String?, String?) {
        var (low, high) = sides
        let begin = try self.frame(low.start(id: self.id(1), nonce: Self.nonce))
        #expect(low.stage == .waiting)
        #expect(high.received(begin) == .requested)
        #expect(high.stage == .requested)
        let answer = try self.frame(high.start(id: self.id(2), nonce: Self.otherNonce))
        #expect(answer == VerificationFrame(id: self.id(1), .answer(nonce: Self.otherNonce)))
        #expect(high.stage == .exchanging)
        guard case .reveal(let reveal, let digits) = low.received(answer) else { return (nil, nil) }
        #expect(reveal == VerificationFrame(id: self.id(1), .reveal(nonce: Self.nonce)))
        #expect(low.stage == .shown)
        guard case .show(let theirs) = high.received(reveal) else { return (digits, nil) }
        #expect(high.stage == .shown)
        return (digits, theirs)
    }

    @Test func bothSidesShowTheSameDigits() throws {
        let (ours, theirs) = try self.compare(self.sides())
        #expect(ours != nil && ours == theirs)
        #expect(ours?.utf8.count == 6)
    }

    /// A man in the middle has two transcripts, and forwards the frames unchanged. The commitment is bound to one transcript.
    @Test func aTranscriptThatDiffersIsNoticed() throws {
        let other = Transcript(initiatorHello: [1], responderHello: [3], transport: .tls)
        let (ours, theirs) = try self.compare(self.sides(other))
        #expect(ours != nil && theirs == nil)
        // If the attacker makes its own commitments for the other side, the digits of the two sides differ.
        #expect(
            VerificationDigits.digits(Self.transcript, beginner: Self.nonce, answerer: Self.otherNonce)
                != VerificationDigits.digits(other, beginner: Self.nonce, answerer: Self.otherNonce))
    }

    @Test func theDigitsDependOnEverything() {
        let digits = { (beginner: UInt8, answerer: UInt8) in
            VerificationDigits.digits(
                Self.transcript, beginner: [UInt8](repeating: beginner, count: 32), answerer: [UInt8](repeating: answerer, count: 32))
        }
        let all = (0..<16).flatMap { one in (0..<16).map { digits(one, $0) } }
        #expect(Set(all).count == all.count)
        #expect(all.allSatisfy { $0.utf8.count == 6 && $0.utf8.allSatisfy { (0x30...0x39).contains($0) } })
    }

    @Test func aRevealThatIsNotWhatWasCommittedToIsRefused() throws {
        var (low, high) = self.sides()
        let begin = try self.frame(low.start(id: self.id(1), nonce: Self.nonce))
        _ = high.received(begin)
        _ = high.start(id: self.id(2), nonce: Self.otherNonce)
        let action = high.received(VerificationFrame(id: self.id(1), .reveal(nonce: Self.otherNonce)))
        guard case .falseReveal(let error) = action else {
            Issue.record("\(action)")
            return
        }
        #expect(error.code == .protocolViolation)
        #expect(high.stage == .idle)
    }

    @Test func ofTwoAttemptsThatCrossTheLowersStands() throws {
        var (low, high) = self.sides()
        let lows = try self.frame(low.start(id: self.id(1), nonce: Self.nonce))
        let highs = try self.frame(high.start(id: self.id(2), nonce: Self.nonce))
        #expect(low.received(highs) == .ignore)
        #expect(low.stage == .waiting)
        let end = VerificationFrame(id: self.id(2), .end(.givenUp))
        #expect(high.received(lows) == .givesWay(end))
        #expect(low.received(end) == .ignore)
        let answer = try self.frame(high.start(id: self.id(3), nonce: Self.otherNonce))
        guard case .reveal(let reveal, let digits) = low.received(answer) else {
            Issue.record("no reveal")
            return
        }
        #expect(high.received(reveal) == .show(digits: digits))
    }

    /// The lower side has given up before the higher side's attempt came, which gave way to the lower's meanwhile.
    @Test func anAttemptThatGaveWayIsNotAnswered() throws {
        var (low, high) = self.sides()
        let lows = try self.frame(low.start(id: self.id(1), nonce: Self.nonce))
        let highs = try self.frame(high.start(id: self.id(2), nonce: Self.nonce))
        let ended = low.end(.givenUp)
        let givenUp = try #require(ended)
        #expect(low.received(highs) == .requested)
        guard case .givesWay(let end) = high.received(lows) else {
            Issue.record("it stands")
            return
        }
        #expect(low.received(end) == .ended(.givenUp))
        #expect(high.received(givenUp) == .ended(.givenUp))
        #expect(low.stage == .idle && high.stage == .idle)
    }

    @Test(arguments: VerificationFrame.EndReason.allCases) func eitherSideEndsIt(_ reason: VerificationFrame.EndReason) throws {
        var (low, high) = self.sides()
        #expect(low.end(reason) == nil)
        let begin = try self.frame(low.start(id: self.id(1), nonce: Self.nonce))
        _ = high.received(begin)
        let ended = high.end(reason)
        let end = try #require(ended)
        #expect(low.received(end) == .ended(reason))
        // A new attempt may follow immediately.
        let again = try self.frame(low.start(id: self.id(4), nonce: Self.nonce))
        #expect(high.received(again) == .requested)
    }

    /// A frame that was in flight when this side ended the attempt is not a violation.
    @Test func lateFramesAreIgnored() throws {
        var (low, high) = self.sides()
        let begin = try self.frame(low.start(id: self.id(1), nonce: Self.nonce))
        _ = high.received(begin)
        let answer = try self.frame(high.start(id: self.id(2), nonce: Self.otherNonce))
        _ = low.end(.timedOut)
        #expect(low.received(answer) == .ignore)
        _ = high.end(.givenUp)
        #expect(high.received(VerificationFrame(id: self.id(1), .reveal(nonce: Self.nonce))) == .ignore)
        #expect(high.received(VerificationFrame(id: self.id(1), .end(.timedOut))) == .ignore)
    }

    @Test func onePersonAsksOnce() throws {
        var (low, high) = self.sides()
        _ = low.start(id: self.id(1), nonce: Self.nonce)
        #expect(low.start(id: self.id(2), nonce: Self.nonce) == .alreadyUnderWay)
        _ = high.received(VerificationFrame(id: self.id(1), .begin(commitment: Self.nonce)))
        _ = high.start(id: self.id(3), nonce: Self.nonce)
        #expect(high.start(id: self.id(4), nonce: Self.nonce) == .alreadyUnderWay)
    }

    /// Every frame, in every stage that does not allow it.
    @Test func whatIsOutOfOrderIsAViolation() throws {
        let begin = VerificationFrame(id: self.id(8), .begin(commitment: Self.nonce))
        let answer = VerificationFrame(id: self.id(9), .answer(nonce: Self.nonce))
        let reveal = VerificationFrame(id: self.id(9), .reveal(nonce: Self.nonce))
        let end = VerificationFrame(id: self.id(9), .end(.givenUp))
        var (idle, requested) = self.sides()
        _ = requested.received(VerificationFrame(id: self.id(1), .begin(commitment: Self.nonce)))
        var answered = requested
        _ = answered.start(id: self.id(2), nonce: Self.nonce)
        var committed = idle
        _ = committed.start(id: self.id(1), nonce: Self.nonce)
        var shown = committed
        _ = shown.received(VerificationFrame(id: self.id(1), .answer(nonce: Self.nonce)))
        #expect(shown.stage == .shown)
        for (machine, frames) in [
            (idle, [answer, reveal, end]), (requested, [begin, answer, reveal, end]), (answered, [begin, answer, reveal, end]),
            (committed, [answer, reveal, end]), (shown, [answer, reveal, end]),
        ] {
            for frame in frames {
                var machine = machine
                guard case .violation(let error) = machine.received(frame) else {
                    Issue.record("\(frame) in \(machine.stage)")
                    continue
                }
                #expect(error.code == .protocolViolation)
            }
        }
        // An id is good for one attempt.
        for number in [UInt64(1)] {
            let again = VerificationFrame(id: self.id(number), .begin(commitment: Self.nonce))
            guard case .violation = shown.received(again) else {
                Issue.record("made twice")
                continue
            }
            guard case .violation = committed.received(again) else {
                Issue.record("our own")
                continue
            }
        }
    }
}
