import EarshotWaiting
public import EarshotWire
public import FoundationEssentials
import NIOCore
import NIOSSL

/// Calls about peers, invitations, sessions and comparisons. The core decides, and answers when its decision is on disk.
extension Node {
    // MARK: Peers

    /// Returns every known peer. Connected peers and those with a decision come first, by the time at which they were first seen.
    public func peers() -> [Peer] { self.core.peers }

    /// Returns the peer called `name`. The name can be a full id, the display name of a known peer, at least 8 characters of an id that is
    /// proven, kept or configured, or a stranger's display name. They are tried in this order.
    ///
    /// - Throws: `unknown-peer`; `ambiguous-peer`, whose message lists the candidates.
    public func peer(_ name: String) throws(EarshotError) -> Peer { try self.core.peer(name) }

    /// Returns the certificate that the peer has presented on its current connection, in DER (RFC 5280). Returns `nil` if there is no
    /// connection or it is unprotected.
    /// - Throws: `unknown-peer`, `ambiguous-peer`.
    public func certificate(of name: String) throws(EarshotError) -> [UInt8]? {
        guard let channel = self.connection(to: try self.core.resolve(name))?.channel else { return nil }
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
    public func setTrust(_ trust: Trust, for name: String, until: Date? = nil) async throws(EarshotError) -> Peer {
        try await self.call(.setTrust(trust, name, until: until.map { WallTime($0) })).peer
    }

    /// Returns the rules that apply to a peer, and their reasons. A full id may also name a peer that has not been seen.
    /// - Throws: `unknown-peer`, `ambiguous-peer`.
    public func explainPolicy(_ name: String) throws(EarshotError) -> PeerPolicy {
        let (peer, decisions) = try self.core.explainPolicy(name)
        return PeerPolicy(
            peerID: peer.id, peerName: peer.name, trust: peer.trust, trustSource: peer.trustSource,
            trustExpiresAt: peer.trustExpiresAt, verified: peer.verified, decisions: decisions)
    }

    // MARK: Invitations

    /// Returns the invitations in the order of their creation; only the pending ones unless `all`.
    public func invitations(all: Bool) -> [Invitation] { self.core.invitations(all: all) }

    /// - Throws: `not-found`.
    public func invitation(_ id: InvitationID) throws(EarshotError) -> Invitation { try self.core.invitation(id) }

    /// Waits until an invitation reaches its final state, at most until its timeout. If the caller's task is cancelled, the wait ends and
    /// the invitation stays pending; ``withdraw(_:)`` withdraws it.
    /// - Throws: `not-found`; `cancelled`.
    public func decided(_ id: InvitationID) async throws(EarshotError) -> Invitation {
        let answered = OneShot<Answer>()
        self.call(.awaitInvitation(id)) { answered.settle($0) }
        return try await withTaskCancellationHandler {
            await answered.value()
        } onCancel: {
            answered.settle(.failure(Self.callerCancelled))
        }.invitation
    }

    /// Invites a peer to a session. The node keeps resolving and dialling until the timeout (30 s by default, at most a day).
    ///
    /// If there is a session already, the answer is an accepted invitation that names it. If an invitation from that peer is pending, this
    /// call accepts it.
    /// - Throws: `invalid-parameter` for a context over 8 KiB, `unknown-peer`, `ambiguous-peer`, `forbidden` for a blocked peer.
    public func invite(_ name: String, context: [UInt8], timeout: Duration?) async throws(EarshotError) -> Invitation {
        try await self.call(.invite(name, context: context, timeout: timeout)).invitation
    }

    /// Withdraws an invitation, and tells the peer.
    /// - Throws: `not-found`; `conflict` if it is already decided or was not made by this machine.
    public func withdraw(_ id: InvitationID) async throws(EarshotError) -> Invitation {
        try await self.call(.withdraw(id)).invitation
    }

    /// Answers an incoming invitation for the user. The decision is on disk before the peer learns of it.
    /// - Throws: `not-found`; `conflict` if it is already decided; `storage` if the decision cannot be written.
    public func respond(to id: InvitationID, _ decision: Invitation.Decision, always: Bool) async throws(EarshotError) -> Invitation {
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
    public func verify(_ name: String, timeout: Duration? = nil) async throws(EarshotError) -> Verification {
        try await self.call(.verify(name, timeout: timeout)).verification
    }

    /// Returns the state of the comparison with a peer.
    /// - Throws: `unknown-peer`, `ambiguous-peer`.
    public func verification(_ name: String) throws(EarshotError) -> Verification { try self.core.verification(name) }

    /// Cancels a comparison or, with `mismatch`, reports that the digits differ. A mismatch is persisted and revokes trust.
    /// - Throws: `unknown-peer`, `ambiguous-peer`; `conflict` if there are no digits that could differ; `storage`.
    public func endVerification(_ name: String, mismatch: Bool) async throws(EarshotError) -> Verification {
        try await self.call(.endVerification(name, mismatch: mismatch)).verification
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
