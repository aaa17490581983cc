/// Two persons compare digits over one connection: who has asked, what was committed to, and what the digits are.
///
/// Either side may begin. The side whose person asks first commits to a nonce; the other one answers with its own once its person has
/// asked too; the first reveals, and both have the digits. When both begin at once, the attempt of the lower peer id stands, as with
/// invitations. The owner starts a new machine with each connection, whose transcript the digits are bound to, keeps the time, and does
/// what the actions say; it brings the randomness.
package struct VerificationStateMachine: Sendable {
    package enum StartAction: Sendable, Hashable {
        /// Send this, and wait.
        case send(VerificationFrame)
        /// This side has asked already.
        case alreadyUnderWay
    }

    package enum ReceivedAction: Sendable, Hashable {
        /// The other side's person has asked: tell the one here, and `start` when they ask too.
        case requested
        /// Send this: the attempt here gives way to the other side's. Then `start` again, by which that is answered.
        case givesWay(VerificationFrame)
        /// Send this, then show the digits.
        case reveal(VerificationFrame, digits: String)
        /// Show the digits.
        case show(digits: String)
        /// The other side has ended the attempt.
        case ended(VerificationFrame.EndReason)
        /// Explained by frames crossing: nothing to do.
        case ignore
        /// What was revealed is not what was committed to: the peer has tried to choose the digits. Refuse, and remember.
        case falseReveal(WireError)
        /// Out of order: refuse with this, and close.
        case violation(WireError)
    }

    /// How far it has come.
    package enum Stage: Sendable, Hashable {
        case idle
        /// The other side's person has asked, the one here has not.
        case requested
        /// The person here has asked, the other side's has not.
        case waiting
        /// Both have, and the other side's nonce is to come.
        case exchanging
        /// Both sides have the digits.
        case shown
    }

    private enum State: Sendable {
        case idle
        case requested(VerificationID, commitment: [UInt8])
        case committed(VerificationID, nonce: [UInt8])
        case answered(VerificationID, commitment: [UInt8], nonce: [UInt8])
        case shown(VerificationID)
    }

    /// How many ended attempts are remembered, because a frame of theirs may be on its way.
    private static let remembered = 32

    private let isLower: Bool
    private let transcript: Transcript
    private var state: State = .idle
    private var ended = RecentIDs<VerificationID>(capacity: remembered)

    package init(localID: PeerID, peerID: PeerID, transcript: Transcript) {
        self.isLower = localID < peerID
        self.transcript = transcript
    }

    package var stage: Stage {
        switch self.state {
        case .idle: .idle
        case .requested: .requested
        case .committed: .waiting
        case .answered: .exchanging
        case .shown: .shown
        }
    }

    /// The person here has asked. `nonce` is `WireLimits.verificationPart` random bytes, `id` a fresh one for an attempt of this side's own.
    package mutating func start(id: VerificationID, nonce: [UInt8]) -> StartAction {
        switch self.state {
        case .idle:
            self.state = .committed(id, nonce: nonce)
            let commitment = VerificationDigits.commitment(to: nonce, self.transcript)
            return .send(VerificationFrame(id: id, .begin(commitment: commitment)))
        case .shown(let last):
            self.ended.insert(last)
            self.state = .idle
            return self.start(id: id, nonce: nonce)
        case .requested(let theirs, let commitment):
            self.state = .answered(theirs, commitment: commitment, nonce: nonce)
            return .send(VerificationFrame(id: theirs, .answer(nonce: nonce)))
        case .committed, .answered:
            return .alreadyUnderWay
        }
    }

    /// A frame came.
    package mutating func received(_ frame: VerificationFrame) -> ReceivedAction {
        switch frame.part {
        case .begin(let commitment): self.received(begin: frame.id, commitment)
        case .answer(let nonce): self.received(answer: frame.id, nonce)
        case .reveal(let nonce): self.received(reveal: frame.id, nonce)
        case .end(let reason): self.received(end: frame.id, reason)
        }
    }

    private mutating func received(begin id: VerificationID, _ commitment: [UInt8]) -> ReceivedAction {
        guard !self.ended.contains(id) else { return Self.violation(.verifyBegin, "the attempt has been made before") }
        switch self.state {
        case .idle:
            self.state = .requested(id, commitment: commitment)
            return .requested
        case .shown(let last):
            guard last != id else { return Self.violation(.verifyBegin, "the attempt has been made before") }
            self.ended.insert(last)
            self.state = .requested(id, commitment: commitment)
            return .requested
        case .committed(let own, _):
            guard own != id else { return Self.violation(.verifyBegin, "it is this side's own attempt") }
            guard !self.isLower else {
                self.ended.insert(id)
                return .ignore
            }
            self.ended.insert(own)
            self.state = .requested(id, commitment: commitment)
            return .givesWay(VerificationFrame(id: own, .end(.givenUp)))
        case .requested, .answered:
            return Self.violation(.verifyBegin, "an attempt is under way")
        }
    }

    private mutating func received(answer id: VerificationID, _ nonce: [UInt8]) -> ReceivedAction {
        switch self.state {
        case .committed(let own, let ownNonce) where own == id:
            self.state = .shown(id)
            return .reveal(
                VerificationFrame(id: id, .reveal(nonce: ownNonce)),
                digits: VerificationDigits.digits(self.transcript, beginner: ownNonce, answerer: nonce))
        case .idle, .requested, .committed, .answered, .shown:
            return self.ended.contains(id) ? .ignore : Self.violation(.verifyAnswer, "it answers no attempt")
        }
    }

    private mutating func received(reveal id: VerificationID, _ nonce: [UInt8]) -> ReceivedAction {
        switch self.state {
        case .answered(let theirs, let commitment, let ownNonce) where theirs == id:
            guard VerificationDigits.commitment(to: nonce, self.transcript) == commitment else {
                self.ended.insert(id)
                self.state = .idle
                return .falseReveal(.outOfOrder(.verifyReveal, why: "it is not what was committed to"))
            }
            self.state = .shown(id)
            return .show(digits: VerificationDigits.digits(self.transcript, beginner: nonce, answerer: ownNonce))
        case .idle, .requested, .committed, .answered, .shown:
            return self.ended.contains(id) ? .ignore : Self.violation(.verifyReveal, "nothing was to be revealed")
        }
    }

    private mutating func received(end id: VerificationID, _ reason: VerificationFrame.EndReason) -> ReceivedAction {
        guard self.current == id else {
            return self.ended.contains(id) ? .ignore : Self.violation(.verifyEnd, "there is no such attempt")
        }
        self.ended.insert(id)
        self.state = .idle
        return .ended(reason)
    }

    /// This side ends the attempt: what to send, where there is one.
    package mutating func end(_ reason: VerificationFrame.EndReason) -> VerificationFrame? {
        guard let id = self.current else { return nil }
        self.ended.insert(id)
        self.state = .idle
        return VerificationFrame(id: id, .end(reason))
    }

    /// Whether this is the attempt under way.
    package func isAt(_ id: VerificationID) -> Bool { self.current == id }

    private var current: VerificationID? {
        switch self.state {
        case .idle: nil
        case .requested(let id, _), .committed(let id, _), .answered(let id, _, _), .shown(let id): id
        }
    }

    private static func violation(_ type: FrameType, _ why: String) -> ReceivedAction { .violation(.outOfOrder(type, why: why)) }
}
