internal import CCommit
package import FoundationEssentials

/// The version of the daemon and the command line, which are built and installed together. Tests compare it with the manual pages
/// and their examples, the API's document and the packages' changelog.
package enum EarshotVersion {
    /// Semantic version (semver.org).
    package static let current = "0.2.0"
    /// The commit of the build: 12 digits, with a + if the checkout had changes; `unknown` outside git.
    package static let commit = String(cString: earshot_commit())
    /// The version as `--version` prints it, after the program's name.
    package static let described = "\(Self.current) (\(Self.commit))"
    /// The earliest plausible time, the 1st of January 2025, long before this version: a clock with an earlier time is wrong.
    package static let date = Date(timeIntervalSince1970: 1_735_689_600)
}
