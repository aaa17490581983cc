/// One step of two persons comparing digits (the DocC article "Verification"): the attempt that it belongs to, and what it says.
package struct VerificationFrame: Sendable, Hashable {
    package enum Part: Sendable, Hashable {
        /// A person here has asked; the commitment to this side's nonce, `WireLimits.verificationPart` bytes.
        case begin(commitment: [UInt8])
        /// A person here has asked too; this side's nonce, `WireLimits.verificationPart` bytes.
        case answer(nonce: [UInt8])
        /// The nonce that was committed to.
        case reveal(nonce: [UInt8])
        /// The attempt is over, on either side.
        case end(EndReason)
    }

    package enum EndReason: UInt8, Sendable, Hashable, CaseIterable {
        /// A person gave it up, or the attempt gave way to the other side's.
        case givenUp = 1
        case timedOut = 2
        /// A person says that the digits differ.
        case mismatch = 3
        /// Too many attempts on this side for now.
        case busy = 4
    }

    /// Chosen by the side that begins.
    package var id: VerificationID
    package var part: Part

    package init(id: VerificationID, _ part: Part) {
        self.id = id
        self.part = part
    }

    /// The number under which it travels.
    package var type: FrameType {
        switch self.part {
        case .begin: .verifyBegin
        case .answer: .verifyAnswer
        case .reveal: .verifyReveal
        case .end: .verifyEnd
        }
    }
}

/// See ``InvitationKind``.
public enum VerificationKind: Sendable {}

/// Names one attempt at comparing digits, made by the side that begins it.
public typealias VerificationID = WireID<VerificationKind>
