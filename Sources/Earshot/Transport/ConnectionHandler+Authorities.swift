import EarshotWire
import FoundationEssentials
import NIOCore

/// A peer that has proven its key is known to the node only once the authorities have looked at its certificates: an invitation of its own
/// may come right behind its proof, and what the rules say of that depends on their word.
///
/// Until then it counts as unproven: it has its place and its deadline there, and nothing of it is read.
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

    /// Asks them, where there is anything to ask, and has the rest of the handshake wait for the answer.
    /// - Returns: whether the peer can go on at once, with no authority to speak for it.
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
        // What came behind the proof is heard now, and what follows is read.
        do throws(WireError) {
            try self.decode(context: context)
        } catch {
            self.refuse(error, context: context)
        }
        self.resumeReading(context: context)
    }
}
