import Crypto
import EarshotWire
import Testing

@Suite struct HandshakeStateMachineTests {
    private typealias Machine = HandshakeStateMachine

    /// One side: a key, a hello, and the machine that they drive.
    private struct Side {
        let key = P256.Signing.PrivateKey()
        var hello: Hello
        var machine: HandshakeStateMachine

        init(
            _ role: HandshakeRole, nonce: UInt8, versions: ClosedRange<UInt8> = 1...1, service: String = "earshot",
            encryption: EncryptionPreference = .required
        ) throws {
            self.hello = try Fixtures.hello(
                versions: versions, publicKey: Array(self.key.publicKey.derRepresentation), nonce: nonce, service: service,
                encryption: encryption)
            self.machine = HandshakeStateMachine(role: role, hello: self.hello, carrier: .plaintext)
        }

        var id: PeerID { PeerID(subjectPublicKeyInfo: self.hello.publicKey) }

        func sign(_ input: [UInt8]) throws -> [UInt8] { Array(try self.key.signature(for: input).derRepresentation) }
    }

    private func sides(
        _ carrierIsTLS: Bool = true, alice: (inout Hello) -> Void = { _ in }, bob: (inout Hello) -> Void = { _ in }, expected: PeerID? = nil
    ) throws -> (Side, Side) {
        var (one, other) = (try Side(.initiator, nonce: 1), try Side(.responder, nonce: 2))
        alice(&one.hello)
        bob(&other.hello)
        one.machine = Machine(
            role: .initiator, hello: one.hello, carrier: carrierIsTLS ? .tls(peerKey: other.hello.publicKey) : .plaintext,
            expectedPeer: expected)
        other.machine = Machine(
            role: .responder, hello: other.hello, carrier: carrierIsTLS ? .tls(peerKey: one.hello.publicKey) : .plaintext)
        return (one, other)
    }

    /// Returns the action of the initiator's machine on a hello that answers its own.
    private func answer(
        tls: Bool = true, alice: (inout Hello) -> Void = { _ in }, bob: (inout Hello) -> Void = { _ in }, expected: PeerID? = nil
    ) throws -> Machine.ReceivedAction {
        var (one, other) = try self.sides(tls, alice: alice, bob: bob, expected: expected)
        #expect(one.machine.start() == .send(one.hello))
        let action = one.machine.received(.hello(other.hello))
        // Both sides give the same verdict, except about the dialled id, which only the initiator knows.
        if expected == nil {
            #expect(other.machine.start() == .wait)
            switch (action, other.machine.received(.hello(one.hello))) {
            case (.wait, .sign): break
            case (.refuse(let ours), .refuse(let theirs)): #expect(ours == theirs)
            case (let ours, let theirs): Issue.record("\(ours) here, \(theirs) there")
            }
        }
        if case .refuse = action {
            #expect(one.machine.received(.hello(other.hello)) == .ignore)
        }
        return action
    }

    @Test(arguments: [true, false]) func twoSidesProveThemselves(tls: Bool) throws {
        let preference: EncryptionPreference = tls ? .required : .none
        var (alice, bob) = try self.sides(tls, alice: { $0.encryption = preference }, bob: { $0.encryption = preference })
        #expect(alice.machine.start() == .send(alice.hello))
        #expect(bob.machine.start() == .wait)
        #expect(alice.machine.hasSentHello)
        #expect(!bob.machine.hasSentHello)

        guard case .sign(let bobsInput) = bob.machine.received(.hello(alice.hello)) else {
            Issue.record("the responder signs at once")
            return
        }
        let bobsProof = Proof(signature: try bob.sign(bobsInput))
        #expect(bob.machine.signed(bobsProof.signature) == .send(bob.hello, bobsProof))
        #expect(!bob.machine.isProven)
        #expect(bob.machine.hasSentHello)

        #expect(alice.machine.received(.hello(bob.hello)) == .wait)
        guard case .verify(let bobsCheck) = alice.machine.received(.proof(bobsProof)) else {
            Issue.record("the initiator verifies")
            return
        }
        #expect(bobsCheck.input == bobsInput)
        #expect(ProofVerifier.isValid(bobsCheck))
        guard case .sign(let alicesInput) = alice.machine.verified(true) else {
            Issue.record("the initiator signs once the other is verified")
            return
        }
        #expect(alicesInput != bobsInput)
        let alicesProof = Proof(signature: try alice.sign(alicesInput))
        guard case .sendAndFinish(alicesProof, let provenBob) = alice.machine.signed(alicesProof.signature) else {
            Issue.record("the initiator is done")
            return
        }
        #expect(alice.machine.isProven)
        guard case .verify(let alicesCheck) = bob.machine.received(.proof(alicesProof)), ProofVerifier.isValid(alicesCheck),
            case .proven(let provenAlice) = bob.machine.verified(true)
        else {
            Issue.record("the responder verifies and is done")
            return
        }
        #expect(bob.machine.isProven)
        #expect(provenBob.id == bob.id)
        #expect(provenAlice.id == alice.id)
        #expect(provenAlice.transcript == provenBob.transcript)
        #expect(provenAlice.version == 1)
        #expect(provenAlice.transport == (tls ? .tls : .plaintext))
        #expect(provenAlice.displayName == alice.hello.displayName)
        #expect(provenAlice.encryption == preference)
    }

    @Test func ourOwnKeyComingBackIsRefused() throws {
        let key = Array(P256.Signing.PrivateKey().publicKey.derRepresentation)
        #expect(try self.answer(alice: { $0.publicKey = key }, bob: { $0.publicKey = key }) == .refuse(.ownKey))
        #expect(WireError.ownKey.code == .identityMismatch)
    }

    @Test func ourOwnNonceComingBackIsRefused() throws {
        #expect(try self.answer(bob: { $0.nonce = [UInt8](repeating: 1, count: 32) }) == .refuse(.reflectedNonce))
        #expect(WireError.reflectedNonce.code == .protocolViolation)
    }

    @Test func anotherKeyThanTheCertificatesIsRefused() throws {
        let (one, other) = try self.sides()
        for role in HandshakeRole.allCases {
            var machine = Machine(role: role, hello: one.hello, carrier: .tls(peerKey: one.hello.publicKey))
            _ = machine.start()
            #expect(machine.received(.hello(other.hello)) == .refuse(.keyNotOfCertificate))
            #expect(machine.received(.ping(1)) == .ignore)
        }
        #expect(WireError.keyNotOfCertificate.code == .identityMismatch)
    }

    @Test func anotherThanTheDialledIsRefused() throws {
        let stranger = PeerID(subjectPublicKeyInfo: [1])
        let (dialler, other) = try self.sides(expected: stranger)
        var one = dialler
        _ = one.machine.start()
        #expect(one.machine.received(.hello(other.hello)) == .refuse(.notTheDialled(other.id)))
        #expect(WireError.notTheDialled(other.id).code == .identityMismatch)
    }

    @Test(arguments: EncryptionPreference.allCases, EncryptionPreference.allCases)
    func theTransportIsTheOneThatBothPreferencesYield(_ ours: EncryptionPreference, _ theirs: EncryptionPreference) throws {
        let overTLS = try self.answer(tls: true, alice: { $0.encryption = ours }, bob: { $0.encryption = theirs })
        let bare = try self.answer(tls: false, alice: { $0.encryption = ours }, bob: { $0.encryption = theirs })
        switch TransportKind.agreed(ours, theirs) {
        case .tls:
            #expect(overTLS == .wait)
            #expect(bare == .refuse(.downgradeDetected))
        case .plaintext:
            #expect(overTLS == .refuse(.encryptionMismatch))
            #expect(bare == .wait)
        case nil:
            #expect(overTLS == .refuse(.encryptionMismatch))
            #expect(bare == .refuse(.encryptionMismatch))
        }
    }

    @Test(arguments: EncryptionPreference.allCases) func aPeerThatHasSpokenTLSIsNotTakenInPlaintextUnderOptional(
        _ ours: EncryptionPreference
    )
        throws
    {
        for (known, isTLS) in [(true, false), (false, false), (true, true)] {
            let theirs: EncryptionPreference = isTLS ? .required : .none
            guard TransportKind.agreed(ours, theirs) == (isTLS ? .tls : .plaintext) else { continue }
            let (dialler, other) = try self.sides(isTLS, alice: { $0.encryption = ours }, bob: { $0.encryption = theirs })
            for role in HandshakeRole.allCases {
                var machine = Machine(
                    role: role, hello: dialler.hello, carrier: isTLS ? .tls(peerKey: other.hello.publicKey) : .plaintext,
                    isTLSPinned: { known && $0 == other.id })
                _ = machine.start()
                let action = machine.received(.hello(other.hello))
                let isRefused = known && !isTLS && ours == .optional
                #expect((action == .refuse(.tlsPinned)) == isRefused)
            }
        }
        #expect(WireError.tlsPinned.code == .downgradeDetected)
    }

    /// A man in the middle of plaintext shows each side a preference that gives plaintext; each signs what it saw and said.
    @Test(arguments: HandshakeRole.allCases, [EncryptionPreference.optional, .required])
    func aRewrittenPreferenceShowsInTheProof(_ role: HandshakeRole, _ theirs: EncryptionPreference) throws {
        var (one, other) = try self.sides(false, alice: { $0.encryption = .optional }, bob: { $0.encryption = theirs })
        if role == .responder { one.machine = Machine(role: .responder, hello: one.hello, carrier: .plaintext) }
        _ = one.machine.start()
        var shown = other.hello
        shown.encryption = .none
        _ = one.machine.received(.hello(shown))
        if role == .responder { _ = one.machine.signed([1]) }
        var ours = one.hello
        ours.encryption = .none
        let (mine, their) = (try FrameEncoder.payload(of: ours), try FrameEncoder.payload(of: other.hello))
        let seen =
            role == .initiator
            ? Transcript(initiatorHello: mine, responderHello: their, transport: .plaintext)
            : Transcript(initiatorHello: their, responderHello: mine, transport: .plaintext)
        let proof = Proof(signature: try other.sign(seen.proofInput(of: role.other)))
        guard case .verify(let check) = one.machine.received(.proof(proof)) else {
            Issue.record("no check")
            return
        }
        #expect(!ProofVerifier.isValid(check))
        guard case .refuseUnproven(let rewritten) = one.machine.verified(false) else {
            Issue.record("not looked into")
            return
        }
        #expect(rewritten.count == 8)
        #expect(rewritten.count(where: ProofVerifier.isValid) == 1)
        #expect(WireError.preferenceRewritten.code == .downgradeDetected)
        // A signature by another key is not evidence of rewriting.
        var forged = rewritten
        for index in forged.indices { forged[index].signature = try one.sign(forged[index].input) }
        #expect(!forged.contains(where: ProofVerifier.isValid))
        #expect(one.machine.received(.proof(proof)) == .ignore)
    }

    @Test func versionsMustMeet() throws {
        #expect(try self.answer(alice: { $0.versions = 1...2 }, bob: { $0.versions = 3...4 }) == .refuse(.versionUnsupported))
        #expect(WireError.versionUnsupported.code == .versionUnsupported)
        for (ours, theirs, version) in [(1...3, 2...9, 3), (2...2, 1...255, 2), (1...1, 1...1, 1)]
            as [(ClosedRange<UInt8>, ClosedRange<UInt8>, UInt8)]
        {
            let (dialler, other) = try self.sides(alice: { $0.versions = ours }, bob: { $0.versions = theirs })
            var one = dialler
            _ = one.machine.start()
            _ = one.machine.received(.hello(other.hello))
            _ = one.machine.received(.proof(Proof(signature: [1])))
            _ = one.machine.verified(true)
            guard case .sendAndFinish(_, let peer) = one.machine.signed([1]) else {
                Issue.record("not done")
                return
            }
            #expect(peer.version == version)
        }
    }

    @Test func serviceTypesMustBeEqual() throws {
        let chess = try ServiceType("chess")
        #expect(try self.answer(bob: { $0.serviceType = chess }) == .refuse(.serviceMismatch))
        #expect(WireError.serviceMismatch.code == .serviceMismatch)
    }

    @Test func anUnknownSchemeIsRefused() throws {
        let ecdsaSHA1 = SignatureScheme(rawValue: 0x0203)
        let (dialler, other) = try self.sides(bob: { $0.signatureScheme = ecdsaSHA1 })
        var one = dialler
        _ = one.machine.start()
        #expect(one.machine.received(.hello(other.hello)) == .refuse(.unsupportedScheme(ecdsaSHA1)))
        #expect(WireError.unsupportedScheme(ecdsaSHA1).code == .unsupported)
    }

    @Test func aBadProofIsRefused() throws {
        let (dialler, other) = try self.sides()
        var one = dialler
        _ = one.machine.start()
        _ = one.machine.received(.hello(other.hello))
        // Our own role's proof, the other key's, garbage, and an empty one.
        guard case .verify(let check) = one.machine.received(.proof(Proof(signature: [0xDE, 0xAD]))) else {
            Issue.record("no check")
            return
        }
        let (label, tail) = (Array("earshot/1 proof".utf8), Array(check.input.suffix(32)))
        #expect(check.input == label + Array("responder".utf8) + tail)
        let reflected = label + Array("initiator".utf8) + tail
        for signature in [try other.sign(reflected), try one.sign(check.input), [], [0xDE, 0xAD], [UInt8](repeating: 0x30, count: 1024)] {
            var forged = check
            forged.signature = signature
            #expect(!ProofVerifier.isValid(forged))
        }
        var honest = check
        honest.signature = try other.sign(check.input)
        #expect(ProofVerifier.isValid(honest))
        #expect(one.machine.verified(false) == .refuse(.badProof))
        #expect(WireError.badProof.code == .identityMismatch)
        #expect(one.machine.received(.proof(Proof(signature: [1]))) == .ignore)
    }

    @Test func aKeyThatIsNoCanonicalP256KeyVerifiesNothing() throws {
        let key = P256.Signing.PrivateKey()
        let der = Array(key.publicKey.derRepresentation)
        let signature = Array(try key.signature(for: [1]).derRepresentation)
        let check = ProofCheck(scheme: .ecdsaSecp256r1SHA256, publicKey: der, input: [1], signature: signature)
        #expect(ProofVerifier.isValid(check))
        // Compressed: SEQUENCE of 57, the same algorithm, BIT STRING of 34.
        let compressed = [0x30, 57] + der[2..<23] + [0x03, 34, 0] + Array(key.publicKey.compressedRepresentation)
        for other in [[], [0x30], Array(der.dropLast()), der + [0], compressed, [UInt8](repeating: 0xFF, count: 2048)] {
            var changed = check
            changed.publicKey = other
            #expect(!ProofVerifier.isValid(changed))
        }
        var unknown = check
        unknown.scheme = SignatureScheme(rawValue: 0x0807)
        #expect(!ProofVerifier.isValid(unknown))
    }

    @Test func everyOtherFrameIsOutOfOrder() throws {
        for named in try Fixtures.frames() {
            if case .refusal = named.frame { continue }
            let violation = Machine.ReceivedAction.refuse(.outOfOrder(named.frame.type, why: "the handshake has another order"))
            for role in HandshakeRole.allCases {
                for step in 0..<5 {
                    var (one, other) = try self.sides()
                    if role == .responder { swap(&one, &other) }
                    // 0: before the start; 1: for a hello; 2: signing or for a proof; 3: for a proof, or verifying; 4: verifying, or signing.
                    if step > 0 { _ = one.machine.start() }
                    if step > 1 { _ = one.machine.received(.hello(other.hello)) }
                    if role == .responder, step > 2 { _ = one.machine.signed([1]) }
                    if step > (role == .responder ? 3 : 2) { _ = one.machine.received(.proof(Proof(signature: [1]))) }
                    if role == .initiator, step > 3 { _ = one.machine.verified(true) }
                    if step == 1, named.frame.type == .hello { continue }
                    if step == (role == .initiator ? 2 : 3), named.frame.type == .proof { continue }
                    #expect(one.machine.received(named.frame) == violation, "\(role) \(step)")
                    #expect(one.machine.received(named.frame) == .ignore)
                }
            }
        }
    }

    @Test func aRefusalEndsIt() throws {
        var (one, _) = try self.sides()
        _ = one.machine.start()
        let refusal = Refusal(code: .busy, explanation: "later")
        #expect(one.machine.received(.refusal(refusal)) == .refused(refusal))
        #expect(one.machine.received(.refusal(refusal)) == .ignore)
    }

    @Test func eventsOutOfPlaceAreThisSidesFault() throws {
        var (one, _) = try self.sides()
        #expect(one.machine.verified(true) == .refuse(.misuse))
        (one, _) = try self.sides()
        #expect(one.machine.signed([1]) == .refuse(.misuse))
        (one, _) = try self.sides()
        _ = one.machine.start()
        #expect(one.machine.start() == .refuse(.misuse))
        #expect(one.machine.received(.ping(1)) == .ignore)
        #expect(!one.machine.isProven)
    }

    @Test func whatEitherSaidIsBoundByTheTranscript() throws {
        let base = Transcript(initiatorHello: [1], responderHello: [2], transport: .tls)
        #expect(base.hash.count == 32)
        let others = [
            Transcript(initiatorHello: [2], responderHello: [1], transport: .tls),
            Transcript(initiatorHello: [1], responderHello: [2], transport: .plaintext),
            Transcript(initiatorHello: [1, 2], responderHello: [], transport: .tls),
            Transcript(initiatorHello: [], responderHello: [1, 2], transport: .tls),
        ]
        #expect(Set(others + [base]).count == 5)
    }

    @Test func everyErrorFitsARefusal() throws {
        let errors: [WireError] = [
            .malformed(.inviteWithdraw, field: "signature_scheme"), .tooLong(type: .max, length: .max, limit: .max), .unknownType(.max),
            .foreignPreamble, .outOfOrder(.resourceChunk, why: "it is not the next within the accepted range"), .misuse, .ownKey,
            .reflectedNonce, .keyNotOfCertificate, .notTheDialled(PeerID(subjectPublicKeyInfo: [1])), .badProof, .encryptionMismatch,
            .downgradeDetected, .preferenceRewritten, .tlsPinned, .versionUnsupported, .serviceMismatch,
            .unsupportedScheme(SignatureScheme(rawValue: .max)),
        ]
        for error in errors {
            let frame = Frame.refusal(error.refusal)
            #expect(try decodeAll([frame.encoded()]) == [frame])
            #expect(!error.description.hasSuffix("."))
        }
    }
}
