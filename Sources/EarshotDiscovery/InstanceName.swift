import CAvahi

/// DNS-SD instance names (RFC 6763 section 4.1.1).
enum InstanceName {
    /// An error for a name that does not fit into a DNS label.
    struct Invalid: Error {}

    /// Checks that a name fits into one label and into a C string.
    static func check(_ name: String) throws(Invalid) {
        guard (1...DiscoveryLimits.instanceNameBytes).contains(name.utf8.count), !name.utf8.contains(0) else { throw Invalid() }
    }

    /// Returns the name that Avahi would try next: `alice #2` after `alice`, shortened to fit.
    static func alternative(to name: String) -> String {
        guard let text = avahi_alternative_service_name(name) else { return name }
        defer { avahi_free(text) }
        return String(cString: text)
    }
}
