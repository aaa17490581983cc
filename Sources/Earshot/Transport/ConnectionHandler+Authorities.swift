import EarshotWire
import FoundationEssentials
import NIOCore

/// Certificate validation after a peer's proof. The node learns of the peer only when its certificates have been validated, because an
/// invitation may directly follow the proof, and the rules for it depend on the result.
///
/// Until then, the connection counts as unproven, with that limit and deadline, and nothing is read from it.
extension ConnectionHandler {
    var isExamining: Bool {
        if case .examining = self.state { true } else { false }
    }

    var validation: CertificateValidation? {
        switch self.security {
        case .tls(let validation, _): validation
        case .plaintext: nil
        }
    }

    /// Starts the validation if there is something to validate. The rest of the handshake waits for the result.
    /// - Returns: Whether the handshake can continue immediately, with no authority that vouches for the peer.
    func askAuthorities(about peer: ProvenPeer, context: ChannelHandlerContext) -> Bool {
        guard let validation = self.validation else { return true }
        let loopBound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        let question = validation.ask(for: peer.publicKey) { [loop = context.eventLoop] validUntil in
            loop.execute {
                let (this, context) = loopBound.value
                this.answered(validUntil, context: context)
            }
        }
        switch question {
        case .pointless: return true
        case .pending:
            self.state = .examining(peer)
            return false
        case .refused:
            let refusal = Refusal(code: .busy, explanation: "too many certificates wait to be examined")
            self.writeAccounted([.refusal(refusal)], context: context)
            self.fail(EarshotError(.busy, "too many peers' certificates wait to be examined"), context: context)
            return false
        }
    }

    private func answered(_ validUntil: Date?, context: ChannelHandlerContext) {
        guard case .examining(let peer) = self.state else { return }
        self.settled(peer, vouchedUntil: validUntil, context: context)
        // Handles frames that followed the proof, and resumes reading.
        do throws(WireError) {
            try self.decode(context: context)
        } catch {
            self.refuse(error, context: context)
        }
        self.resumeReading(context: context)
    }
}
