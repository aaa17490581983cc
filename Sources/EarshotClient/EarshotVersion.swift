package import FoundationEssentials

/// The version of the daemon and the command line, which are built and installed together.
package enum EarshotVersion {
    /// Semantic version (semver.org).
    package static let current = "0.1.0"
    /// A day long before which nothing of it was there, the 1st of January 2025: a clock that says less is wrong.
    package static let date = Date(timeIntervalSince1970: 1_735_689_600)
}
