/// The policy for invitations that no user has seen yet.
public enum InvitationPolicy: String, Sendable, Hashable, Codable, CaseIterable {
    /// Keep the invitation pending until a user decides.
    case ask
    case accept
    case reject
}
