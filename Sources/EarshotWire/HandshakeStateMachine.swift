/// Who the other side has proven to be.
package struct ProvenPeer: Sendable, Hashable {
    package let id: PeerID
    package let displayName: DisplayName
    /// SubjectPublicKeyInfo, DER.
    package let publicKey: [UInt8]
    /// How its proof is signed, which fits its key.
    package let signatureScheme: SignatureScheme
    /// The protocol version in use: the highest that both sides speak.
    package let version: UInt8
    package let encryption: EncryptionPreference
    package let transport: TransportKind
    package let extensions: [HelloExtension]
    /// What both sides signed; the comparison of digits derives from it.
    package let transcript: Transcript

    package init(
        id: PeerID, displayName: DisplayName, publicKey: [UInt8], signatureScheme: SignatureScheme, version: UInt8,
        encryption: EncryptionPreference, transport: TransportKind, extensions: [HelloExtension], transcript: Transcript
    ) {
        self.id = id
        self.displayName = displayName
        self.publicKey = publicKey
        self.signatureScheme = signatureScheme
        self.version = version
        self.encryption = encryption
        self.transport = transport
        self.extensions = extensions
        self.transcript = transcript
    }
}

/// Two strangers on a connection prove their keys to each other.
///
/// The initiator sends its hello at once. The responder answers with its own hello and its proof. The initiator checks the proof and
/// sends its own, by which it is done; the responder checks that one and is done. Each side signs a digest of both hellos and of
/// the transport under its own role, so that nothing of it can be changed on the way, replayed, or sent back.
///
/// The machine knows no sockets, clock or private key. Its owner, the connection's handler, strips the preamble
/// (``PreambleDecoder``), tells it events and performs the actions: sends frames, signs, checks signatures with ``ProofVerifier``,
/// and closes the connection when the handshake takes too long. After an action `refuse` it sends the error's refusal and closes.
package struct HandshakeStateMachine: Sendable {
    /// What carries the frames, and what it says of the other side.
    package enum Carrier: Sendable, Hashable {
        /// TLS, with the key of the other side's certificate (SubjectPublicKeyInfo, DER).
        case tls(peerKey: [UInt8])
        case plaintext

        /// What the transcript calls it.
        package var kind: TransportKind {
            switch self {
            case .tls: .tls
            case .plaintext: .plaintext
            }
        }
    }

    package enum StartAction: Sendable, Hashable {
        /// Send the preamble and this hello.
        case send(Hello)
        /// Wait for the initiator's.
        case wait
        case refuse(WireError)
    }

    package enum ReceivedAction: Sendable, Hashable {
        case wait
        /// Sign these bytes and give the signature to `signed`.
        case sign([UInt8])
        /// Check this and give the outcome to `verified`.
        case verify(ProofCheck)
        case refuse(WireError)
        /// The other side refused: close.
        case refused(Refusal)
        /// The connection is over already.
        case ignore
    }

    package enum VerifiedAction: Sendable, Hashable {
        /// Sign these bytes and give the signature to `signed`.
        case sign([UInt8])
        /// The responder is done.
        case proven(ProvenPeer)
        case refuse(WireError)
        /// Refuse with `preferenceRewritten` where one of these verifies, else with `badProof`: they are what the peer has signed
        /// if a man in the middle changed an encryption preference.
        case refuseUnproven(rewritten: [ProofCheck])
    }

    package enum SignedAction: Sendable, Hashable {
        /// Send the preamble, this hello and this proof.
        case send(Hello, Proof)
        /// Send this proof; the initiator is done.
        case sendAndFinish(Proof, ProvenPeer)
        case refuse(WireError)
    }

    private enum State: Sendable {
        case idle
        /// The initiator has sent its hello.
        case awaitingHello
        /// The responder waits for the first hello.
        case awaitingFirstHello
        case awaitingProof(ProvenPeer)
        case verifying(ProvenPeer, Proof)
        case signing(ProvenPeer)
        case proven
        case failed
    }

    private let role: HandshakeRole
    private let hello: Hello
    private let carrier: Carrier
    private let expectedPeer: PeerID?
    private let isTLSPinned: @Sendable (PeerID) -> Bool
    private var theirHello: Hello?
    private var state: State = .idle
    /// Whether this side's preamble and hello have gone out: a refusal before them needs the preamble in front of it.
    package private(set) var hasSentHello = false

    /// A handshake with `hello` as this side's words, fresh nonce included. `expectedPeer` is the id that was dialled, if one was;
    /// `isTLSPinned` tells of a peer whether it is not taken in plaintext where this side's preference is `optional`.
    package init(
        role: HandshakeRole, hello: Hello, carrier: Carrier, expectedPeer: PeerID? = nil,
        isTLSPinned: @escaping @Sendable (PeerID) -> Bool = { _ in false }
    ) {
        self.role = role
        self.hello = hello
        self.carrier = carrier
        self.expectedPeer = expectedPeer
        self.isTLSPinned = isTLSPinned
    }

    /// Whether the other side has proven its key and this side has sent what proves its own.
    package var isProven: Bool {
        if case .proven = self.state { true } else { false }
    }

    /// The connection (and TLS, where it carries it) stands.
    package mutating func start() -> StartAction {
        switch (self.state, self.role) {
        case (.idle, .initiator):
            self.state = .awaitingHello
            self.hasSentHello = true
            return .send(self.hello)
        case (.idle, .responder):
            self.state = .awaitingFirstHello
            return .wait
        case (.awaitingHello, _), (.awaitingFirstHello, _), (.awaitingProof, _), (.verifying, _), (.signing, _), (.proven, _), (.failed, _):
            self.state = .failed
            return .refuse(.misuse)
        }
    }

    /// A frame came.
    package mutating func received(_ frame: Frame) -> ReceivedAction {
        switch (self.state, frame) {
        case (.failed, _):
            return .ignore
        case (_, .refusal(let refusal)):
            self.state = .failed
            return .refused(refusal)
        case (.awaitingHello, .hello(let theirs)), (.awaitingFirstHello, .hello(let theirs)):
            return self.receivedHello(theirs)
        case (.awaitingProof(let peer), .proof(let proof)):
            self.state = .verifying(peer, proof)
            return .verify(
                ProofCheck(
                    scheme: peer.signatureScheme, publicKey: peer.publicKey, input: peer.transcript.proofInput(of: self.role.other),
                    signature: proof.signature))
        case (.idle, _), (.awaitingHello, _), (.awaitingFirstHello, _), (.awaitingProof, _), (.verifying, _), (.signing, _), (.proven, _):
            self.state = .failed
            return .refuse(.outOfOrder(frame.type, why: "the handshake has another order"))
        }
    }

    /// The check that `received` asked for has been made.
    package mutating func verified(_ isValid: Bool) -> VerifiedAction {
        switch (self.state, isValid, self.role) {
        case (.verifying(let peer, _), true, .initiator):
            self.state = .signing(peer)
            return .sign(peer.transcript.proofInput(of: self.role))
        case (.verifying(let peer, _), true, .responder):
            self.state = .proven
            return .proven(peer)
        case (.verifying(let peer, let proof), false, _):
            self.state = .failed
            switch self.carrier {
            case .tls: return .refuse(.badProof)
            case .plaintext: return .refuseUnproven(rewritten: self.rewrittenChecks(peer, proof))
            }
        case (.idle, _, _), (.awaitingHello, _, _), (.awaitingFirstHello, _, _), (.awaitingProof, _, _), (.signing, _, _), (.proven, _, _),
            (.failed, _, _):
            self.state = .failed
            return .refuse(.misuse)
        }
    }

    /// The signature that `received` or `verified` asked for has been made.
    package mutating func signed(_ signature: [UInt8]) -> SignedAction {
        switch (self.state, self.role) {
        case (.signing(let peer), .initiator):
            self.state = .proven
            return .sendAndFinish(Proof(signature: signature), peer)
        case (.signing(let peer), .responder):
            self.state = .awaitingProof(peer)
            self.hasSentHello = true
            return .send(self.hello, Proof(signature: signature))
        case (.idle, _), (.awaitingHello, _), (.awaitingFirstHello, _), (.awaitingProof, _), (.verifying, _), (.proven, _), (.failed, _):
            self.state = .failed
            return .refuse(.misuse)
        }
    }

    private mutating func receivedHello(_ theirs: Hello) -> ReceivedAction {
        do throws(WireError) {
            let peer = try self.checked(theirs)
            self.theirHello = theirs
            switch self.role {
            case .initiator:
                self.state = .awaitingProof(peer)
                return .wait
            case .responder:
                self.state = .signing(peer)
                return .sign(peer.transcript.proofInput(of: self.role))
            }
        } catch {
            self.state = .failed
            return .refuse(error)
        }
    }

    /// Everything about the other side's hello that needs no signature.
    private func checked(_ theirs: Hello) throws(WireError) -> ProvenPeer {
        let ours = self.hello
        guard theirs.publicKey != ours.publicKey else { throw .ownKey }
        guard theirs.nonce != ours.nonce else { throw .reflectedNonce }
        guard ours.versions.overlaps(theirs.versions) else { throw .versionUnsupported }
        guard theirs.serviceType == ours.serviceType else { throw .serviceMismatch }
        guard ProofVerifier.supports(theirs.signatureScheme, of: theirs.publicKey) else {
            throw .unsupportedScheme(theirs.signatureScheme)
        }
        switch self.carrier {
        case .tls(let peerKey): guard peerKey == theirs.publicKey else { throw .keyNotOfCertificate }
        case .plaintext: break
        }
        let id = PeerID(subjectPublicKeyInfo: theirs.publicKey)
        guard self.expectedPeer == nil || self.expectedPeer == id else { throw .notTheDialled(id) }
        let transport = self.carrier.kind
        switch (TransportKind.agreed(ours.encryption, theirs.encryption), transport) {
        case (.tls, .tls): break
        case (.plaintext, .plaintext): guard ours.encryption != .optional || !self.isTLSPinned(id) else { throw .tlsPinned }
        case (.tls, .plaintext): throw .downgradeDetected
        case (.plaintext, .tls), (nil, _): throw .encryptionMismatch
        }
        return ProvenPeer(
            id: id, displayName: theirs.displayName, publicKey: theirs.publicKey, signatureScheme: theirs.signatureScheme,
            version: min(ours.versions.upperBound, theirs.versions.upperBound), encryption: theirs.encryption, transport: transport,
            extensions: theirs.extensions, transcript: try self.transcript(ours, theirs))
    }

    /// The encoding is canonical, so that encoding what was decoded gives the bytes that came.
    private func transcript(_ ours: Hello, _ theirs: Hello) throws(WireError) -> Transcript {
        let (ourPayload, theirPayload) = (try FrameEncoder.payload(of: ours), try FrameEncoder.payload(of: theirs))
        return switch self.role {
        case .initiator: Transcript(initiatorHello: ourPayload, responderHello: theirPayload, transport: self.carrier.kind)
        case .responder: Transcript(initiatorHello: theirPayload, responderHello: ourPayload, transport: self.carrier.kind)
        }
    }

    /// What the peer has signed if either preference was another one on its side.
    private func rewrittenChecks(_ peer: ProvenPeer, _ proof: Proof) -> [ProofCheck] {
        guard let theirHello = self.theirHello else { return [] }
        var checks: [ProofCheck] = []
        for (ourPreference, theirPreference) in EncryptionPreference.allCases.flatMap({ one in
            EncryptionPreference.allCases.map { (one, $0) }
        }) where ourPreference != self.hello.encryption || theirPreference != theirHello.encryption {
            var (ours, theirs) = (self.hello, theirHello)
            ours.encryption = ourPreference
            theirs.encryption = theirPreference
            guard let transcript = try? self.transcript(ours, theirs) else { continue }
            checks.append(
                ProofCheck(
                    scheme: peer.signatureScheme, publicKey: peer.publicKey, input: transcript.proofInput(of: self.role.other),
                    signature: proof.signature))
        }
        return checks
    }
}
