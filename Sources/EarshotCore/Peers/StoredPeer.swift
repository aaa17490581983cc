package import EarshotWire

/// A peer that was decided about, or that has a session, as it is kept.
package struct StoredPeer: Sendable, Hashable, Identifiable {
    package let id: PeerID
    package var name: String
    package var trust: Trust
    /// Whether it has spoken TLS with us: it is not accepted in plaintext until a person resets that.
    package var isTLSPinned: Bool
    /// Whether it has ever proven its key to this machine: one that was decided about by its full id may never have been here.
    package var isProven: Bool
    /// Whether a person has decided about it: one that only the settings let in goes with its session.
    package var isDecided: Bool
    /// When its trust ends by itself.
    package var trustedUntil: WallTime?
    /// What came of the last comparison of digits with it.
    package var verified: Verified?
    package var firstSeen: WallTime
    package var lastSeen: WallTime

    package init(
        id: PeerID, name: String, trust: Trust, isTLSPinned: Bool, isProven: Bool = true, isDecided: Bool = true,
        trustedUntil: WallTime? = nil, verified: Verified? = nil, firstSeen: WallTime, lastSeen: WallTime
    ) {
        self.id = id
        self.name = name
        self.trust = trust
        self.isTLSPinned = isTLSPinned
        self.isProven = isProven
        self.isDecided = isDecided
        self.trustedUntil = trustedUntil
        self.verified = verified
        self.firstSeen = firstSeen
        self.lastSeen = lastSeen
    }

    /// Whether the other says the same but for when the peer was seen.
    package func isSame(as other: StoredPeer) -> Bool {
        var other = other
        other.firstSeen = self.firstSeen
        other.lastSeen = self.lastSeen
        return self == other
    }

    /// As a person says; a key whose digits differed is not trusted by habit.
    package mutating func trustForGood() {
        guard self.verified != .mismatched else { return }
        self.trust = .trusted
        self.trustedUntil = nil
    }
}

/// A session as it is kept: by its members' keys, our own first.
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
