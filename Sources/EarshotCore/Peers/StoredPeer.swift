package import EarshotWire

/// A peer with a decision or a session, as stored on disk.
package struct StoredPeer: Sendable, Hashable, Identifiable {
    package let id: PeerID
    /// The peer's own name.
    package var name: String
    /// The name that a user here has given to the peer.
    package var alias: DisplayName?
    package var trust: Trust
    /// Whether the peer has used TLS with this machine. Its plaintext connections are refused until a user resets that.
    package var isTLSPinned: Bool
    /// Whether the peer has ever proven its key to this machine. A user may decide about a full id that was never here.
    package var isProven: Bool
    /// Whether a user has decided about the peer. If only the settings let the peer in, its row is removed with its session.
    package var isDecided: Bool
    /// The time at which the trust expires.
    package var trustedUntil: WallTime?
    /// The result of the last comparison of digits with the peer.
    package var verified: Verified?
    package var firstSeen: WallTime
    package var lastSeen: WallTime

    package init(
        id: PeerID, name: String, alias: DisplayName? = nil, trust: Trust, isTLSPinned: Bool, isProven: Bool = true, isDecided: Bool = true,
        trustedUntil: WallTime? = nil, verified: Verified? = nil, firstSeen: WallTime, lastSeen: WallTime
    ) {
        self.id = id
        self.name = name
        self.alias = alias
        self.trust = trust
        self.isTLSPinned = isTLSPinned
        self.isProven = isProven
        self.isDecided = isDecided
        self.trustedUntil = trustedUntil
        self.verified = verified
        self.firstSeen = firstSeen
        self.lastSeen = lastSeen
    }

    /// Whether another row is equal except for the times at which the peer was seen.
    package func isSame(as other: StoredPeer) -> Bool {
        var other = other
        other.firstSeen = self.firstSeen
        other.lastSeen = self.lastSeen
        return self == other
    }

    /// Trusts the peer permanently, unless its digits differed when they were compared.
    package mutating func trustForGood() {
        guard self.verified != .mismatched else { return }
        self.trust = .trusted
        self.trustedUntil = nil
    }
}

/// A session as stored on disk: the ids of its members, this machine's first.
package struct StoredSession: Sendable, Hashable, Identifiable {
    package let id: SessionID
    package var members: [PeerID]
    package var createdAt: WallTime

    package init(id: SessionID, members: [PeerID], createdAt: WallTime) {
        self.id = id
        self.members = members
        self.createdAt = createdAt
    }
}
