public import Earshot
public import Logging

/// The choice of a backend, as the settings spell it.
public enum DiscoveryBackend: String, Sendable, Hashable, Codable, CaseIterable {
    /// Avahi where it answers, the embedded responder where it does not.
    case auto
    case avahi, embedded
    /// Configured peers only.
    case none

    /// The discovery to run; `nil` for `none`. With `startsEmbedded` the automatic one does not wait for Avahi before it goes on with the
    /// embedded responder, for one that follows another that had come to it.
    public func makeDiscovery(logger: Logger, startsEmbedded: Bool = false) -> (any PeerDiscovery)? {
        switch self {
        case .auto: AutomaticDiscovery(logger: logger, startsEmbedded: startsEmbedded)
        case .avahi: SingleBackendDiscovery.avahi(logger: logger)
        case .embedded: SingleBackendDiscovery.embedded(logger: logger)
        case .none: nil
        }
    }
}
