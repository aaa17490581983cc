public import Earshot
public import Logging

/// The choice of a backend, as spelled in the settings.
public enum DiscoveryBackend: String, Sendable, Hashable, Codable, CaseIterable {
    /// Avahi if it answers, otherwise the embedded responder.
    case auto
    case avahi, embedded
    /// No discovery: configured peers only.
    case none

    /// Returns the discovery to run; `nil` for `none`. With `startsEmbedded` the automatic one starts with the embedded responder without
    /// waiting for Avahi, because the discovery that it replaces had already switched to it.
    public func makeDiscovery(logger: Logger, startsEmbedded: Bool = false) -> (any PeerDiscovery)? {
        switch self {
        case .auto: AutomaticDiscovery(logger: logger, startsEmbedded: startsEmbedded)
        case .avahi: SingleBackendDiscovery.avahi(logger: logger)
        case .embedded: SingleBackendDiscovery.embedded(logger: logger)
        case .none: nil
        }
    }
}
