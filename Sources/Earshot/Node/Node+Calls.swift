public import EarshotWire
public import FoundationEssentials
import NIOCore
import NIOSSL

/// What programs ask of a node about peers, invitations, sessions and comparisons: the core decides, and answers once that is on disk.
extension Node {
    // MARK: Peers

    /// Every peer that is known, connected ones and those of a decision first seen first.
    public func peers() -> [Peer] { self.core.peers }

    /// The peer that a person means by `name`: a full id, the display name of a peer that is known, at least 8 characters of an id that is
    /// proven, kept or configured, or a stranger's display name, in this order.
    ///
    /// - Throws: `unknown-peer`; `ambiguous-peer`, whose message lists the candidates.
    public func peer(_ name: String) throws(EarshotError) -> Peer { try self.core.peer(name) }

    /// The certificate that the peer has shown on the connection that stands, DER (RFC 5280); `nil` where there is none, or it is unprotected.
    /// - Throws: `unknown-peer`, `ambiguous-peer`.
    public func certificate(of name: String) throws(EarshotError) -> [UInt8]? {
        guard let channel = self.connection(to: try self.core.resolve(name))?.channel else { return nil }
        let tls = try? channel.pipeline.syncOperations.handler(type: NIOSSLHandler.self)
        return try? tls?.peerCertificate?.toDERBytes()
    }

    /// Sets what this machine thinks of a peer; the decision is on disk when this returns.
    ///
    /// `blocked` also ends its sessions, declines its invitation and stops listening to it. `unknown` ends its sessions where it
    /// was trusted or in one, and forgets that it has spoken TLS, and what came of a comparison of digits, here or by the peer's word.
    /// `trusted` while digits are shown says that they were equal.
    ///
    /// Trust ends by itself at `until`, and is for good where that is `nil`.
    /// - Throws: `unknown-peer`, `ambiguous-peer`; `invalid-parameter` for a key that is not proven and not named by its full id, and for
    ///   a time that is over or more than `EarshotLimits.trustTime` away; `forbidden` for trust in a key whose digits differed, by a
    ///   person's word here or, in this run, there.
    public func setTrust(_ trust: Trust, for name: String, until: Date? = nil) async throws(EarshotError) -> Peer {
        try await self.call(.setTrust(trust, name, until: until.map { WallTime($0) })).peer
    }

    /// Which rule decides what about a peer, and why; also of one that has not been seen, by its full id.
    /// - Throws: `unknown-peer`, `ambiguous-peer`.
    public func explainPolicy(_ name: String) throws(EarshotError) -> PeerPolicy {
        let (peer, decisions) = try self.core.explainPolicy(name)
        return PeerPolicy(
            peerID: peer.id, peerName: peer.name, trust: peer.trust, trustSource: peer.trustSource,
            trustExpiresAt: peer.trustExpiresAt, verified: peer.verified, decisions: decisions)
    }

    // MARK: Invitations

    /// Invitations in the order in which they were made; the pending ones alone unless `all`.
    public func invitations(all: Bool) -> [Invitation] { self.core.invitations(all: all) }

    /// - Throws: `not-found`.
    public func invitation(_ id: InvitationID) throws(EarshotError) -> Invitation { try self.core.invitation(id) }

    /// Waits until an invitation has its final state; its timeout bounds the wait. A caller whose task is cancelled waits no more, and the
    /// invitation goes on: ``withdraw(_:)`` takes it back.
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

    /// Asks a peer to join a session; goes on resolving and dialling until the timeout (30 s by default, at most a day).
    ///
    /// With a session already there the answer is an accepted invitation that names it; an invitation from that very peer that
    /// waits for a decision is accepted by this.
    /// - Throws: `invalid-parameter` for a context over 8 KiB, `unknown-peer`, `ambiguous-peer`, `forbidden` for a blocked peer.
    public func invite(_ name: String, context: [UInt8], timeout: Duration?) async throws(EarshotError) -> Invitation {
        try await self.call(.invite(name, context: context, timeout: timeout)).invitation
    }

    /// Takes an invitation back; the peer is told.
    /// - Throws: `not-found`; `conflict` where it is decided already or is not this machine's.
    public func withdraw(_ id: InvitationID) async throws(EarshotError) -> Invitation {
        try await self.call(.withdraw(id)).invitation
    }

    /// A person's answer to an incoming invitation; on disk before the peer hears of it.
    /// - Throws: `not-found`; `conflict` where it is decided already; `storage` where the decision cannot be kept.
    public func respond(to id: InvitationID, _ decision: Invitation.Decision, always: Bool) async throws(EarshotError) -> Invitation {
        try await self.call(.respond(id, decision, always: always)).invitation
    }

    // MARK: Sessions

    /// Every session, whether its member is connected or not.
    public func sessions() -> [Session] { self.core.sessions }

    /// Ends a session for both sides; the decision is on disk when this returns.
    /// - Throws: `not-found`, `storage`.
    public func leave(_ id: SessionID) async throws(EarshotError) {
        if case .failure(let error) = await self.call(.leave(id)) { throw error }
    }

    // MARK: Comparing digits

    /// Asks for a comparison with a peer, which is dialled for it; the digits come with `verification.changed`, once the peer's person has
    /// asked too, within `timeout` or `EarshotLimits.comparisonTime`. Asked again while it waits, it waits for the longer of the two.
    /// - Throws: `unknown-peer`, `ambiguous-peer`, `forbidden` for a blocked peer, `busy` where it is too soon after the last comparison.
    public func verify(_ name: String, timeout: Duration? = nil) async throws(EarshotError) -> Verification {
        try await self.call(.verify(name, timeout: timeout)).verification
    }

    /// How the comparison with a peer stands.
    /// - Throws: `unknown-peer`, `ambiguous-peer`.
    public func verification(_ name: String) throws(EarshotError) -> Verification { try self.core.verification(name) }

    /// Gives a comparison up, or says that the digits differ: that is remembered, and takes trust back.
    /// - Throws: `unknown-peer`, `ambiguous-peer`; `conflict` where there are no digits that could differ; `storage`.
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

    /// Why there is no such answer.
    var error: EarshotError {
        if case .failure(let error) = self { return error }
        return EarshotError(.unavailable, "the core has answered something else")
    }
}
