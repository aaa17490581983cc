/// The version of the daemon and the command line, which are built and installed together.
package enum EarshotVersion {
    /// Semantic version (semver.org).
    package static let current = "0.1.0"
}
