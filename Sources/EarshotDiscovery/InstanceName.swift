import CAvahi

/// DNS-SD instance names (RFC 6763 section 4.1.1).
enum InstanceName {
    /// A name that no DNS label can hold.
    struct Invalid: Error {}

    /// Throws unless the name fits into one label and into a C string.
    static func check(_ name: String) throws(Invalid) {
        guard (1...DiscoveryLimits.instanceNameBytes).contains(name.utf8.count), !name.utf8.contains(0) else { throw Invalid() }
    }

    /// What Avahi would call the next one of this name: `alice #2` after `alice`, cut to fit.
    static func alternative(to name: String) -> String {
        guard let text = avahi_alternative_service_name(name) else { return name }
        defer { avahi_free(text) }
        return String(cString: text)
    }
}
