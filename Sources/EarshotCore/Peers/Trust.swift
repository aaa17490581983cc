/// What this machine thinks of a peer id; changes only by a person's or a policy's decision about a proven key.
public enum Trust: String, Sendable, Hashable, Codable, CaseIterable {
    case unknown
    case trusted
    case blocked
}
