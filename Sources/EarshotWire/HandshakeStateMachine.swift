/// A peer whose key is proven.
package struct ProvenPeer: Sendable, Hashable {
    package let id: PeerID
    package let displayName: DisplayName
    /// SubjectPublicKeyInfo, DER.
    package let publicKey: [UInt8]
    /// The scheme of its proof, which fits its key.
    package let signatureScheme: SignatureScheme
    /// The protocol version in use: the highest that both sides speak.
    package let version: UInt8
    package let encryption: EncryptionPreference
    package let transport: TransportKind
    package let extensions: [HelloExtension]
    /// The transcript that both sides signed. The comparison of digits derives from it.
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

/// The mutual proof of keys between two sides of a new connection.
///
/// The initiator sends its hello at once. The responder answers with its own hello and its proof. The initiator checks that proof and sends
/// its own, which completes its side. The responder checks it and is done. Each side signs a digest of both hellos and of the transport
/// under its own role, so that nothing can be changed in transit, replayed, or reflected.
///
/// The machine knows no sockets, clock or private key. Its owner, the connection's handler, strips the preamble (``PreambleDecoder``),
/// passes it events and performs the actions: it sends frames, signs, checks signatures with ``ProofVerifier``, and closes the connection
/// when the handshake takes too long. After an action `refuse` it sends the error's refusal and closes.
package struct HandshakeStateMachine: Sendable {
    /// The transport of the frames, with its evidence about the other side.
    package enum Carrier: Sendable, Hashable {
        /// TLS, with the key of the other side's certificate (SubjectPublicKeyInfo, DER).
        case tls(peerKey: [UInt8])
        case plaintext

        /// The transport's name in the transcript.
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
        /// Wait for the initiator's hello.
        case wait
        case refuse(WireError)
    }

    package enum ReceivedAction: Sendable, Hashable {
        case wait
        /// Sign these bytes and pass the signature to `signed`.
        case sign([UInt8])
        /// Check this and pass the outcome to `verified`.
        case verify(ProofCheck)
        case refuse(WireError)
        /// The other side refused: close.
        case refused(Refusal)
        /// The connection is already over.
        case ignore
    }

    package enum VerifiedAction: Sendable, Hashable {
        /// Sign these bytes and pass the signature to `signed`.
        case sign([UInt8])
        /// The responder is done.
        case proven(ProvenPeer)
        case refuse(WireError)
        /// Refuse with `preferenceRewritten` if one of these verifies, otherwise with `badProof`. They are the proofs that the peer would
        /// have signed if an attacker in the middle had changed an encryption preference.
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
    /// Whether this side's preamble and hello have been sent. A refusal before them must be preceded by the preamble.
    package private(set) var hasSentHello = false

    /// Creates a handshake with `hello` as this side's hello, fresh nonce included. `expectedPeer` is the id that was dialled, if any.
    /// `isTLSPinned` tells whether a peer is refused in plaintext when this side's preference is `optional`.
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

    /// Whether the other side has proven its key and this side has sent its own proof.
    package var isProven: Bool {
        if case .proven = self.state { true } else { false }
    }

    /// Starts the handshake on an established connection (including TLS, if used).
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

    /// Returns the action on a received frame.
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

    /// Takes the outcome of the check that `received` requested.
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

    /// Takes the signature that `received` or `verified` requested.
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

    /// Checks everything about the peer's hello that needs no signature.
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

    /// Returns the transcript. The encoding is canonical, so encoding a decoded hello gives the received bytes.
    private func transcript(_ ours: Hello, _ theirs: Hello) throws(WireError) -> Transcript {
        let (ourPayload, theirPayload) = (try FrameEncoder.payload(of: ours), try FrameEncoder.payload(of: theirs))
        return switch self.role {
        case .initiator: Transcript(initiatorHello: ourPayload, responderHello: theirPayload, transport: self.carrier.kind)
        case .responder: Transcript(initiatorHello: theirPayload, responderHello: ourPayload, transport: self.carrier.kind)
        }
    }

    /// Returns the proofs that the peer would have signed if either preference had been different on its side.
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
