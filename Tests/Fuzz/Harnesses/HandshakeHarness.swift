import EarshotWire
import NIOCore

/// The handshake machine: the input is what its owner tells it, in any order and with any frame.
///
/// No peer is proven without a signature that was asked for and found valid, after a hello that was accepted; and after a refusal the
/// machine says nothing more.
enum HandshakeHarness: Harness {
    private struct Story {
        var verifyAsked = false
        var verified = false
        var signAsked = false
        var isOver = false
    }

    static func run(_ input: [UInt8]) {
        var dice = Dice(input)
        let setting = dice.byte()
        let role: HandshakeRole = setting & 1 == 0 ? .initiator : .responder
        let preferences: [EncryptionPreference] = [.none, .optional, .required, .optional]
        guard let name = try? DisplayName("alice"), let service = try? ServiceType("earshot") else { return }
        let ours = Hello(
            versions: 1...1, publicKey: [0x30, 1, 2], signatureScheme: .ecdsaSecp256r1SHA256, nonce: [UInt8](repeating: 7, count: 32),
            serviceType: service, displayName: name, encryption: preferences[Int(setting >> 1 & 3)])
        let peerKey = dice.block()
        let carrier: HandshakeStateMachine.Carrier = setting & 8 == 0 ? .tls(peerKey: peerKey) : .plaintext
        let expected = setting & 16 == 0 ? nil : PeerID(subjectPublicKeyInfo: peerKey)
        let isTLSPinned = setting & 32 != 0
        var machine = HandshakeStateMachine(role: role, hello: ours, carrier: carrier, expectedPeer: expected) { _ in isTLSPinned }
        var story = Story()
        while !dice.isEmpty { self.step(&machine, &dice, &story, carrier: carrier, expected: expected) }
    }

    private static func step(
        _ machine: inout HandshakeStateMachine, _ dice: inout Dice, _ story: inout Story, carrier: HandshakeStateMachine.Carrier,
        expected: PeerID?
    ) {
        switch dice.byte() % 8 {
        case 0:
            if case .refuse = machine.start() { story.isOver = true }
        case 1, 2, 3, 4:
            guard let type = FrameType(rawValue: dice.byte()),
                let frame = try? FrameParser.parse(ByteBuffer(bytes: dice.block()), of: type)
            else { return }
            switch machine.received(frame) {
            case .wait, .ignore: break
            case .sign: story.signAsked = true
            case .verify(let check):
                story.verifyAsked = true
                // The verifier must return a result for any key and any signature.
                _ = ProofVerifier.isValid(check)
            case .refuse, .refused: story.isOver = true
            }
        case 5, 6:
            let isValid = dice.byte() & 1 == 1
            switch machine.verified(isValid) {
            case .sign:
                demand(isValid && story.verifyAsked, "a signature is only made for who has proven")
                story.verified = true
                story.signAsked = true
            case .proven(let peer):
                demand(isValid && story.verifyAsked, "a responder takes only a valid proof")
                story.verified = true
                self.check(peer, carrier, expected)
            case .refuse: story.isOver = true
            case .refuseUnproven(let checks):
                let preferences = EncryptionPreference.allCases.count
                demand(checks.count < preferences * preferences, "each pair is checked once")
                story.isOver = true
            }
        default:
            switch machine.signed(dice.block()) {
            case .send: demand(story.signAsked, "a proof is only sent where one was asked for")
            case .sendAndFinish(_, let peer):
                demand(story.verified, "an initiator is done only after a valid proof")
                self.check(peer, carrier, expected)
            case .refuse: story.isOver = true
            }
        }
        demand(!machine.isProven || (story.verified && story.signAsked), "nobody is proven without both proofs")
        demand(!(machine.isProven && story.isOver), "a refusal is the end")
    }

    private static func check(_ peer: ProvenPeer, _ carrier: HandshakeStateMachine.Carrier, _ expected: PeerID?) {
        if case .tls(let key) = carrier { demand(peer.publicKey == key, "the key is the certificate's") }
        demand(peer.id == PeerID(subjectPublicKeyInfo: peer.publicKey), "the id is the key's")
        demand(expected == nil || expected == peer.id, "who was dialled is who answered")
        demand(peer.transport == carrier.kind, "the transport is the one in use")
    }
}
