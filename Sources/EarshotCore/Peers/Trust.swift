/// The trust of this machine in a peer id. Only a user's or a policy's decision about a proven key changes it.
public enum Trust: String, Sendable, Hashable, Codable, CaseIterable {
    case unknown
    case trusted
    case blocked
}
