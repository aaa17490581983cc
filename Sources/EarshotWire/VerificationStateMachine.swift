/// The comparison of digits by two users over one connection: the requests, the commitments and the digits.
///
/// Either side may begin. The side whose user asks first commits to a nonce. The other side answers with its own nonce once its user has
/// asked too. The first side then reveals its nonce, and both have the digits. If both begin at once, the attempt of the lower peer id
/// stands, as with invitations.
///
/// The owner starts a new machine with each connection, whose transcript the digits are bound to. The owner keeps the time, performs the
/// actions and supplies the randomness.
package struct VerificationStateMachine: Sendable {
    package enum StartAction: Sendable, Hashable {
        /// Send this frame, and wait.
        case send(VerificationFrame)
        /// This side has already asked.
        case alreadyUnderWay
    }

    package enum ReceivedAction: Sendable, Hashable {
        /// The peer's user has asked: tell the user here, and call `start` when they ask too.
        case requested
        /// Send this frame: the attempt here yields to the peer's. Then call `start` again, which answers the peer's attempt.
        case givesWay(VerificationFrame)
        /// Send this frame, then show the digits.
        case reveal(VerificationFrame, digits: String)
        /// Show the digits.
        case show(digits: String)
        /// The peer has ended the attempt.
        case ended(VerificationFrame.EndReason)
        /// Explained by crossing frames: nothing to do.
        case ignore
        /// The revealed nonce does not match the commitment: the peer has tried to choose the digits. Refuse, and remember that.
        case falseReveal(WireError)
        /// Out of order: refuse with this error, and close.
        case violation(WireError)
    }

    /// The progress of the comparison.
    package enum Stage: Sendable, Hashable {
        case idle
        /// The peer's user has asked, and the user here has not.
        case requested
        /// The user here has asked, and the peer's user has not.
        case waiting
        /// Both users have asked, and the peer's nonce has yet to arrive.
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

    /// The number of ended attempts that are remembered, because frames of theirs may be in flight.
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

    /// Starts or answers an attempt, because the user here has asked. `nonce` is `WireLimits.verificationPart` random bytes, and `id` a
    /// fresh id in case this side begins.
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

    /// Returns the action on a received frame.
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

    /// Ends the attempt on this side. Returns the frame to send, if there is an attempt.
    package mutating func end(_ reason: VerificationFrame.EndReason) -> VerificationFrame? {
        guard let id = self.current else { return nil }
        self.ended.insert(id)
        self.state = .idle
        return VerificationFrame(id: id, .end(reason))
    }

    /// Whether this is the current attempt.
    package func isAt(_ id: VerificationID) -> Bool { self.current == id }

    private var current: VerificationID? {
        switch self.state {
        case .idle: nil
        case .requested(let id, _), .committed(let id, _), .answered(let id, _, _), .shown(let id): id
        }
    }

    private static func violation(_ type: FrameType, _ why: String) -> ReceivedAction { .violation(.outOfOrder(type, why: why)) }
}
