/// What decides on an offer of a resource from a session member.
public enum OfferPolicy: String, Sendable, Hashable, Codable, CaseIterable {
    /// Take it, within the limits.
    case session
    /// Keep it waiting for a person.
    case ask
}
