/// One step of a comparison of digits between two users (the DocC article "Verification"): the attempt that it belongs to, and its content.
package struct VerificationFrame: Sendable, Hashable {
    package enum Part: Sendable, Hashable {
        /// A user here has started the comparison. Carries the commitment to this side's nonce, `WireLimits.verificationPart` bytes.
        case begin(commitment: [UInt8])
        /// A user here has joined the comparison. Carries this side's nonce, `WireLimits.verificationPart` bytes.
        case answer(nonce: [UInt8])
        /// The committed nonce.
        case reveal(nonce: [UInt8])
        /// The attempt is over, on either side.
        case end(EndReason)
    }

    package enum EndReason: UInt8, Sendable, Hashable, CaseIterable {
        /// A user cancelled the attempt, or it yielded to the other side's.
        case givenUp = 1
        case timedOut = 2
        /// A user says that the digits differ.
        case mismatch = 3
        /// This side has had too many attempts for now.
        case busy = 4
    }

    /// Chosen by the side that begins.
    package var id: VerificationID
    package var part: Part

    package init(id: VerificationID, _ part: Part) {
        self.id = id
        self.part = part
    }

    /// The type number of the frame.
    package var type: FrameType {
        switch self.part {
        case .begin: .verifyBegin
        case .answer: .verifyAnswer
        case .reveal: .verifyReveal
        case .end: .verifyEnd
        }
    }
}

/// A tag type, see ``InvitationKind``.
public enum VerificationKind: Sendable {}

/// The id of one attempt at comparing digits, made by the side that begins it.
public typealias VerificationID = WireID<VerificationKind>
