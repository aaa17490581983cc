import EarshotWaiting
public import EarshotWire
public import FoundationEssentials
import NIOCore
import NIOSSL

/// Calls about peers, invitations, sessions and comparisons. The core decides, and answers when its decision is on disk.
extension Node {
    // MARK: Peers

    /// Returns every known peer. Connected peers and those with a decision come first, by the time at which they were first seen.
    public func peers() -> [Peer] {
        self.handle(.device(.wanted))
        return self.core.peers
    }

    /// Returns a peer by its id or by a name. A name can be a full id, the display name of a known peer, at least 8 characters of an id that
    /// is proven, stored or configured, or the display name of another peer. They are tried in this order. All calls about a peer accept
    /// the same names.
    ///
    /// - Throws: `unknown-peer`; `ambiguous-peer`, whose message lists the candidates.
    public func peer(_ peer: any PeerReference) throws(EarshotError) -> Peer { try self.core.peer(peer.description) }

    /// Returns the certificate that the peer has presented on its current connection, in DER (RFC 5280). Returns `nil` if there is no
    /// connection or it is unprotected.
    /// - Throws: `unknown-peer`, `ambiguous-peer`.
    public func certificate(of peer: any PeerReference) throws(EarshotError) -> [UInt8]? {
        guard let channel = self.connection(to: try self.core.resolve(peer.description))?.channel else { return nil }
        let tls = try? channel.pipeline.syncOperations.handler(type: NIOSSLHandler.self)
        return try? tls?.peerCertificate?.toDERBytes()
    }

    /// Sets the trust of a peer. When this returns, the decision is on disk.
    ///
    /// - `blocked` also ends the peer's sessions, declines its invitation and ignores its later frames.
    /// - `unknown` ends the peer's sessions if it was trusted or in one. It also clears the note that the peer has used TLS, and the
    ///   result of a comparison of digits, whether reported here or by the peer.
    /// - `trusted` confirms a running comparison: its digits are equal.
    ///
    /// Trust expires at `until`, or never if `until` is `nil`.
    /// - Throws: `unknown-peer`, `ambiguous-peer`; `invalid-parameter` for a key that is not proven and not named by its full id, and for
    ///   a time that is past or more than `EarshotLimits.trustTime` away; `forbidden` for trust in a key whose digits differed, as
    ///   reported by a user here or, in this run, by the peer's user.
    @discardableResult
    public func setTrust(_ trust: Trust, for peer: any PeerReference, until: Date? = nil) async throws(EarshotError) -> Peer {
        try await self.call(.setTrust(trust, peer.description, until: until.map { WallTime($0) })).peer
    }

    /// Gives a peer an alias, which goes before its own name everywhere, or removes the alias (`nil`). When this returns, that is on disk. An
    /// alias names its peer even if others go by that name.
    /// - Throws: `unknown-peer`, `ambiguous-peer`; `invalid-parameter` for a key that is not proven and not named by its full id, and for an
    ///   alias that is an id; `conflict` for the name of another peer that is known here.
    @discardableResult
    public func setAlias(_ alias: DisplayName?, for peer: any PeerReference) async throws(EarshotError) -> Peer {
        try await self.call(.setAlias(alias, peer.description)).peer
    }

    /// Returns the rules that apply to a peer, and their reasons. A full id may also name a peer that has not been seen.
    /// - Throws: `unknown-peer`, `ambiguous-peer`.
    public func explainPolicy(_ peer: any PeerReference) throws(EarshotError) -> PeerPolicy {
        let (peer, decisions) = try self.core.explainPolicy(peer.description)
        return PeerPolicy(
            peerID: peer.id, peerName: peer.name, trust: peer.trust, trustSource: peer.trustSource,
            trustExpiresAt: peer.trustExpiresAt, verified: peer.verified, decisions: decisions)
    }

    // MARK: Invitations

    /// Returns the invitations in the order of their creation; only the pending ones unless `all`.
    public func invitations(all: Bool = false) -> [Invitation] { self.core.invitations(all: all) }

    /// Returns an invitation, pending or decided.
    /// - Throws: `not-found`.
    public func invitation(_ id: InvitationID) throws(EarshotError) -> Invitation { try self.core.invitation(id) }

    /// Waits until an invitation reaches its final state, at most until its timeout, and returns it. If the caller's task is cancelled, the wait ends and
    /// the invitation stays pending; ``withdraw(_:)`` withdraws it.
    /// - Throws: `not-found`; `cancelled`.
    public func outcome(of id: InvitationID) async throws(EarshotError) -> Invitation {
        let answered = OneShot<Answer>()
        self.call(.awaitInvitation(id)) { answered.settle($0) }
        return try await withTaskCancellationHandler {
            await answered.value()
        } onCancel: {
            answered.settle(.failure(Self.callerCancelled))
        }.invitation
    }

    /// Invites a peer to a session, and returns when the invitation is on its way; ``outcome(of:)`` waits for the answer.
    ///
    /// If there is a session already, the result is an accepted invitation that names it. If an invitation from that peer is pending, this
    /// call accepts it.
    /// - Parameters:
    ///   - peer: The peer, by its id or a name (``peer(_:)``).
    ///   - context: Data for the invited program, at most 8 KiB.
    ///   - timeout: How long the node keeps resolving and dialling, and waits for the answer: at most a day. `nil` and times of 0 or less
    ///     mean ``Configuration/invitationTimeout``, which is 30 s by default.
    /// - Returns: The invitation, pending or already accepted.
    /// - Throws: `invalid-parameter` for a context over 8 KiB, `unknown-peer`, `ambiguous-peer`, `forbidden` for a blocked peer.
    @discardableResult
    public func invite(
        _ peer: any PeerReference, context: [UInt8] = [], timeout: Duration? = nil
    ) async throws(EarshotError) -> Invitation {
        try await self.call(.invite(peer.description, context: context, timeout: timeout)).invitation
    }

    /// Withdraws an invitation, and tells the peer.
    /// - Throws: `not-found`; `conflict` if it is already decided or was not made by this machine.
    @discardableResult
    public func withdraw(_ id: InvitationID) async throws(EarshotError) -> Invitation {
        try await self.call(.withdraw(id)).invitation
    }

    /// Answers an incoming invitation for the user. With `always`, an accepted inviter is also trusted from now on. The decision is on disk
    /// before the peer learns of it.
    /// - Throws: `not-found`; `conflict` if it is already decided; `storage` if the decision cannot be written.
    @discardableResult
    public func respond(
        to id: InvitationID, _ decision: Invitation.Decision, always: Bool = false
    ) async throws(EarshotError) -> Invitation {
        try await self.call(.respond(id, decision, always: always)).invitation
    }

    // MARK: Sessions

    /// Returns every session, whether its member is connected or not.
    public func sessions() -> [Session] { self.core.sessions }

    /// Ends a session for both sides. When this returns, the decision is on disk.
    /// - Throws: `not-found`, `storage`.
    public func leave(_ id: SessionID) async throws(EarshotError) {
        if case .failure(let error) = await self.call(.leave(id)) { throw error }
    }

    // MARK: Comparing digits

    /// Asks for a comparison of digits with a peer, and dials it if necessary. The event `verification.changed` brings the digits when the
    /// peer's user has also asked, within `timeout` or `EarshotLimits.comparisonTime`. A repeated call while the comparison waits extends
    /// the wait to the longer of the two timeouts.
    /// - Throws: `unknown-peer`, `ambiguous-peer`, `forbidden` for a blocked peer, `busy` too soon after the last comparison.
    public func verify(_ peer: any PeerReference, timeout: Duration? = nil) async throws(EarshotError) -> Verification {
        try await self.call(.verify(peer.description, timeout: timeout)).verification
    }

    /// Returns the state of the comparison with a peer.
    /// - Throws: `unknown-peer`, `ambiguous-peer`.
    public func verification(_ peer: any PeerReference) throws(EarshotError) -> Verification {
        try self.core.verification(peer.description)
    }

    /// Cancels a comparison or, with `mismatch`, reports that the digits differ. A mismatch is persisted and revokes trust.
    /// - Throws: `unknown-peer`, `ambiguous-peer`; `conflict` if there are no digits that could differ; `storage`.
    @discardableResult
    public func endVerification(_ peer: any PeerReference, mismatch: Bool = false) async throws(EarshotError) -> Verification {
        try await self.call(.endVerification(peer.description, mismatch: mismatch)).verification
    }
}

extension Answer {
    fileprivate var invitation: Invitation {
        get throws(EarshotError) {
            if case .invitation(let invitation) = self { return invitation }
            throw self.error
        }
    }

    fileprivate var peer: Peer {
        get throws(EarshotError) {
            if case .peer(let peer) = self { return peer }
            throw self.error
        }
    }

    fileprivate var verification: Verification {
        get throws(EarshotError) {
            if case .verification(let verification) = self { return verification }
            throw self.error
        }
    }

    var stream: ByteStream {
        get throws(EarshotError) {
            if case .stream(let stream) = self { return stream }
            throw self.error
        }
    }

    /// The error if the answer is not of the expected kind.
    var error: EarshotError {
        if case .failure(let error) = self { return error }
        return EarshotError(.unavailable, "the core has answered something else")
    }
}
