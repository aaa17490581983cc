/// The policy for offers of resources from peers in a session.
public enum OfferPolicy: String, Sendable, Hashable, Codable, CaseIterable {
    /// Accept the offer, within the limits.
    case session
    /// Keep the offer pending until a user decides.
    case ask
}

/// The policy for offers of resources to a group.
public enum GroupFilePolicy: String, Sendable, Hashable, Codable, CaseIterable {
    /// Treat the offer like one from a session member.
    case accept
    /// Do the same if the sender is trusted or in a session; otherwise keep the offer pending until a user decides.
    case ask
}
