/// What decides on an offer of a resource from a session member.
public enum OfferPolicy: String, Sendable, Hashable, Codable, CaseIterable {
    /// Take it, within the limits.
    case session
    /// Keep it waiting for a person.
    case ask
}

/// What decides on an offer of a resource to a group.
public enum GroupFilePolicy: String, Sendable, Hashable, Codable, CaseIterable {
    /// As on one from a session member.
    case accept
    /// The same where the sender is trusted or in a session; keep any other waiting for a person.
    case ask
}
