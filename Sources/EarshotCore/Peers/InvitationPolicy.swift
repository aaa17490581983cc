/// What decides on an invitation that no person has looked at yet.
public enum InvitationPolicy: String, Sendable, Hashable, Codable, CaseIterable {
    /// Keep it pending for a person.
    case ask
    case accept
    case reject
}
