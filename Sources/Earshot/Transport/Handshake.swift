import EarshotWire

/// A ``EarshotWire/HandshakeStateMachine`` with the operations it needs: it signs with this node's key, verifies the peer's proofs, and
/// returns the frames to send.
struct Handshake {
    /// The next action of the connection's handler.
    enum Outcome {
        case wait
        /// The preamble precedes the first frames of a side.
        case send([Frame], withPreamble: Bool)
        /// The peer's key is proven. These frames are sent before all others.
        case proven(ProvenPeer, sending: [Frame])
        /// Send the reason, and close.
        case refuse(WireError)
        /// Close.
        case fail(EarshotError)
    }

    private var machine: HandshakeStateMachine
    private let sign: @Sendable ([UInt8]) throws -> [UInt8]
    private let role: HandshakeRole

    init(settings: ConnectionHandler.Settings, carrier: HandshakeStateMachine.Carrier) {
        let tlsPins = settings.tlsPins
        self.machine = HandshakeStateMachine(
            role: settings.role, hello: settings.hello, carrier: carrier, expectedPeer: settings.expectedPeer,
            isTLSPinned: { tlsPins.contains($0) })
        self.sign = settings.sign
        self.role = settings.role
    }

    /// Whether a refusal would now be this side's first output. A responder that refuses the first hello has not yet sent its preamble.
    var hasSaidNothing: Bool { self.role == .responder && !self.machine.hasSentHello }

    mutating func start() -> Outcome {
        switch self.machine.start() {
        case .send(let hello): .send([.hello(hello)], withPreamble: true)
        case .wait: .wait
        case .refuse(let error): .refuse(error)
        }
    }

    mutating func received(_ frame: Frame) -> Outcome {
        switch self.machine.received(frame) {
        case .wait, .ignore: .wait
        case .sign(let input): self.signed(input)
        case .verify(let check): self.verified(check)
        case .refuse(let error): .refuse(error)
        case .refused(let refusal):
            .fail(EarshotError(refusal.code.earshotCode, "the peer refused the connection: \(refusal.code.name)\(refusal.inBrackets)"))
        }
    }

    private mutating func verified(_ check: ProofCheck) -> Outcome {
        switch self.machine.verified(ProofVerifier.isValid(check)) {
        case .sign(let input): self.signed(input)
        case .proven(let peer): .proven(peer, sending: [])
        case .refuse(let error): .refuse(error)
        case .refuseUnproven(let rewritten):
            .refuse(rewritten.contains(where: ProofVerifier.isValid) ? .preferenceRewritten : .badProof)
        }
    }

    private mutating func signed(_ input: [UInt8]) -> Outcome {
        let signature: [UInt8]
        do {
            signature = try self.sign(input)
        } catch {
            return .fail(EarshotError(.unavailable, "cannot sign with the identity's key: \(error)", underlying: error))
        }
        return switch self.machine.signed(signature) {
        case .send(let hello, let proof): .send([.hello(hello), .proof(proof)], withPreamble: true)
        case .sendAndFinish(let proof, let peer): .proven(peer, sending: [.proof(proof)])
        case .refuse(let error): .refuse(error)
        }
    }
}

extension Refusal {
    /// The other side's explanation, whose key is not proven yet.
    fileprivate var inBrackets: String { self.explanation.isEmpty ? "" : " (\(self.explanation))" }
}
